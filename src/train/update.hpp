// SPDX-License-Identifier: MIT
// add_update: the solver as nodes of the graph: one launch over the whole parameter block.
#pragma once

#include "graph/graph.hpp"

#include <dlprim/solver_options.hpp>

namespace dlprim {

/// Adds, to a differentiated graph, the nodes (part update; with options.accumulate > 1 also part
/// accumulate) and assignments that change "@params" by "@gradients". Reads the scalars "@lr",
/// "@correction1" (1 - beta1^t) and "@correction2" (1 - beta2^t).
void add_update(Graph& graph, const SolverOptions& options);

}  // namespace dlprim
