// SPDX-License-Identifier: MIT
// label_inputs(): which inputs of a network hold class numbers, so that they can be checked.
#pragma once

#include "graph/graph.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace dlprim {

/// The inputs that hold class numbers, by name, and how many classes there are. Labels are followed
/// through operators that keep them, and the smallest number of classes of all readers counts.
std::map<std::string, std::int64_t> label_inputs(const Graph& graph);

}  // namespace dlprim
