// SPDX-License-Identifier: MIT
// label_inputs(): which inputs of a network contain class numbers, so that these can be checked.
#pragma once

#include "graph/graph.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace dlprim {

/// The inputs that contain class numbers, by name, with their number of classes. Labels are
/// followed back through operators that do not change them. If an input has several readers, the
/// smallest number of classes counts.
std::map<std::string, std::int64_t> label_inputs(const Graph& graph);

}  // namespace dlprim
