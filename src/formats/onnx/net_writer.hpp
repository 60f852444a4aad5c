// SPDX-License-Identifier: MIT
// write_net(): converts operators of a Builder to a network description. Known values become
// constants and parameters.
#pragma once

#include "formats/onnx/builder.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dlprim::onnx {

/// A network and the values of its parameters, by name; values are shared with the model's.
struct ImportedNet {
    NetDescription description;
    std::map<std::string, HostValue> values;
};

using NamedRefs = std::vector<std::pair<std::string, Ref>>;

/// The network of these operators. `inputs` and `outputs` give its inputs and outputs distinct
/// names. Patterns of exporters are replaced by single operators (patterns.hpp), and operators that
/// no output needs are left out.
ImportedNet write_net(const Builder& builder, std::vector<BuiltOperator> operators,
                      const NamedRefs& inputs, const NamedRefs& outputs);

}  // namespace dlprim::onnx
