// SPDX-License-Identifier: MIT
// import_model(): a model becomes one static network.
#pragma once

#include "formats/onnx/model.hpp"
#include "formats/onnx/net_writer.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dlprim::onnx {

/// What keeps a small file from asking for all time or memory.
struct ImportLimits {
    std::int64_t iterations = 1 << 14;                   ///< of one Loop or Scan
    std::int64_t nodes = 1 << 18;                        ///< of functions, branches and loops
    std::uint64_t known_bytes = std::uint64_t{1} << 30;  ///< see Builder::limit_known_bytes()
};

/// What a caller may feed: the graph's inputs that are no initialisers.
std::vector<ValueInfo> fed_inputs(const Model& model);

/// The description is made for one set of input shapes, by which sizes that the model computes are
/// folded. A symbol takes its size from `shapes`, from `batch` where it is the first dimension, and
/// is 1 there otherwise. A batch that the model declares as a number stays that number here; the
/// description may be given another. Throws Error, which begins with the model's source and names
/// the node: unsupported (an operator set, operator, attribute or type; a size that only a run
/// knows), format (a node that breaks ONNX's rules), invalid_argument (shapes that do not fit).
ImportedNet import_model(const Model& model, const std::map<std::string, Shape>& shapes = {},
                         std::int64_t batch = 0);

}  // namespace dlprim::onnx
