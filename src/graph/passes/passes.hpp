// SPDX-License-Identifier: MIT
// The graph passes, in the order in which they run.
#pragma once

#include "graph/graph.hpp"

#include <string>
#include <vector>

namespace dlprim {

/// Composites (LSTM, Attention, SoftmaxWithLoss, ...) become the nodes that they are made of.
void expand_composites(Graph& graph);

struct DifferentiateOptions {
    bool input_gradients = false;  ///< also of every float input (dlprim_run --grads)
    /// true: each output has a value "@grad/<output>" with role input that the user feeds; false: a
    /// loss starts from its weight at every element, other outputs from nothing.
    bool seeds_are_inputs = false;
};
/// Adds the nodes of backward. Afterwards graph.gradients maps trainable parameters (and inputs) to
/// their gradients; values that several nodes read get their gradients summed by one pointwise node.
void differentiate(Graph& graph, const DifferentiateOptions& options = {});

/// Removes what does nothing, lowers operators (Operator::lower), folds BatchNorm into the preceding
/// linear operator in inference, merges pointwise chains. `fuse` false: only lowering and dead code.
void simplify(Graph& graph, bool fuse = true);

}  // namespace dlprim
