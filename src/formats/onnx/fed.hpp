// SPDX-License-Identifier: MIT
// Fed: what the importer must know of a value that a run gives to an input: the shape and type of a
// tensor (its contents are not needed), strings, a sequence, or none.
#pragma once

#include "base/text.hpp"
#include "formats/onnx/model.hpp"
#include "graph/graph.hpp"

#include <string>
#include <variant>
#include <vector>

namespace dlprim::onnx {

struct Fed {
    using Sequence = std::vector<Fed>;
    std::variant<std::monostate, TensorSpec, HostStrings, Sequence> data;

    const TensorSpec* tensor() const { return std::get_if<TensorSpec>(&data); }
    const HostStrings* strings() const { return std::get_if<HostStrings>(&data); }
    const Sequence* sequence() const { return std::get_if<Sequence>(&data); }

    /// For messages: "float [2, 3]", "string [4]", "a sequence of 2", "nothing".
    std::string str() const {
        if (tensor()) return cat(name_of(tensor()->dtype), " ", tensor()->shape.str());
        if (strings()) return cat("string ", strings()->shape.str());
        return sequence() ? cat("a sequence of ", sequence()->size()) : "nothing";
    }
};

}  // namespace dlprim::onnx
