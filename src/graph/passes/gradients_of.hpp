// SPDX-License-Identifier: MIT
// The gradients of one operator as nodes of a graph that computes them alone.
#pragma once

#include "graph/graph.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace dlprim {

/// Adds the nodes that compute the gradients of an operator's inputs and parameters `wanted`, by
/// index into `inputs`, of the gradient `dy` of its first output. What they need of the forward
/// pass they compute again. Throws Error(invalid_argument) for a type that is not differentiable
/// and for shapes that do not fit.
std::vector<ValueId> add_gradients(Graph& graph, std::string_view type, std::string_view name,
                                   const Attrs& attrs, const std::vector<ValueId>& inputs,
                                   ValueId dy, std::span<const std::int64_t> wanted);

}  // namespace dlprim
