// SPDX-License-Identifier: MIT
// The gradient of broadcasting: sums over the dimensions that an operand was broadcast along.
#pragma once

#include "graph/graph.hpp"

#include <string>

namespace dlprim {

/// `gradient` summed to the shape `target`, which broadcasts to its shape. The same value if the
/// shapes are equal.
ValueId sum_to_shape(Graph& graph, const std::string& name, ValueId gradient, const Shape& target);

}  // namespace dlprim
