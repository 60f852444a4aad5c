// SPDX-License-Identifier: MIT
// add_update: the solver as nodes of the graph: one launch over the whole parameter block.
#pragma once

#include "graph/graph.hpp"

#include <dlprim/solver_options.hpp>

namespace dlprim {

/// The state that a graph's loss is to be multiplied by (DifferentiateOptions::loss_scale);
/// no_value where no operator is of fp16, or options want none. Holds options.loss_scale once the
/// solver has written that there.
ValueId add_loss_scale(Graph& graph, const SolverOptions& options);
constexpr const char* loss_scale_name = "@loss_scale";

/// With options.guard_loss: the state that is 1 from the first batch on with a loss that is not
/// finite, and 0 before.
constexpr const char* loss_guard_name = "@loss_guard";

/// Adds, to a differentiated graph, the nodes (part update; with options.accumulate > 1 also part
/// accumulate) and assignments that change "@params" by "@gradients". Reads the scalars "@lr",
/// "@correction1" (1 - beta1^t) and "@correction2" (1 - beta2^t). With a loss scale: gradients are
/// divided by it; one that is not finite leaves parameters and states as they are, but halves the
/// scale; t counts the updates that were made, in a state of its own (Micikevicius et al., "Mixed
/// precision training", 2018). With options.guard_loss nothing changes from the first loss on that
/// is not finite, the loss scale and accumulated gradients included.
void add_update(Graph& graph, const SolverOptions& options, ValueId loss_scale = no_value);

}  // namespace dlprim
