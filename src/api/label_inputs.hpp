// SPDX-License-Identifier: MIT
// label_inputs(): which inputs of a network contain class numbers, so that these can be checked.
#pragma once

#include "graph/graph.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace dlprim {

/// What an input of class numbers may hold.
struct LabelInput {
    std::int64_t classes = 0;             ///< numbers below this one
    std::optional<std::int64_t> ignored;  ///< and this one, which does not count
    bool holds(std::int64_t label) const {
        return (label >= 0 && label < classes) || label == ignored;
    }
};

/// The inputs that contain class numbers, by name. Labels are followed back through operators that
/// do not change them. If an input has several readers, the smallest number of classes counts, and
/// a label that all of them ignore.
std::map<std::string, LabelInput> label_inputs(const Graph& graph);

}  // namespace dlprim
