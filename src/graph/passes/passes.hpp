// SPDX-License-Identifier: MIT
// The graph passes, in the order in which they run.
#pragma once

#include "graph/graph.hpp"

#include <dlprim/context.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

/// Marks nodes with the engines that the user forces on them: (node name or operator type, engine
/// name). To be called before passes that replace or merge nodes, which hand the mark on to what a
/// node becomes, and again behind them, for nodes that they made. A name goes before a type.
void force_engines(Graph& graph, const std::vector<std::pair<std::string, std::string>>& engines);

/// Composites (LSTM, Attention, SoftmaxWithLoss, ...) become the nodes that they are made of. What
/// takes no operands of 16 bits computes in float, between casts.
void expand_composites(Graph& graph);

struct DifferentiateOptions {
    bool input_gradients = false;  ///< also of every float input (dlprim_run --grads)
    /// true: each output has a value "@grad/<output>" with role input that the user feeds; false: a
    /// loss starts from its weight at every element, other outputs from nothing.
    bool seeds_are_inputs = false;
    ValueId loss_scale = no_value;  ///< [1]: multiplies what losses start from
};
/// Adds the nodes of backward. Afterwards graph.gradients maps trainable parameters (and inputs) to
/// their gradients; values that several nodes read get their gradients summed by one pointwise
/// node. What the loss does not depend on gets a gradient of zeros.
void differentiate(Graph& graph, const DifferentiateOptions& options = {});

/// In inference, a BatchNorm behind a convolution or an InnerProduct is folded into its weights (by
/// nodes on the parameters alone, which the planner runs once).
void fold_batch_norms(Graph& graph);

/// Attaches Activation and residual Elementwise sums to the node that makes their input, as its
/// epilogue, wherever `accepts` says of the fused node that an engine can run it.
void fuse_epilogues(Graph& graph, const std::function<bool(const Graph&, const Node&)>& accepts);

/// Operator::lower on every node that has it.
void lower(Graph& graph);

/// Merges chains of Pointwise nodes into one node, which saves memory traffic.
void merge_pointwise(Graph& graph);

/// Computes cheap elementwise values again in the Pointwise nodes that read them, where that takes
/// the device less time than passing them through memory, and keeps no tensor for longer. Wants a
/// graph without tombstones; returns whether it changed anything. Then more may merge, and more may
/// be found by another call.
bool recompute_pointwise(Graph& graph, const Traits& device);

/// Gives values between nodes of precision fp16 or bf16 that type, where `seconds` says of the
/// nodes that make and read them that some engine takes it (infinity: none does), and not that they
/// take more than `cost` times as long together as with the value in float and all others as they
/// are. Of at least `least` elements, and never: parameters and what is made of them alone, their
/// gradients, what is seen outside of the graph, and statistics, that is, what is small beside what
/// it is made from. The last of the passes: others expect float.
void lower_precision(Graph& graph, std::int64_t least, double cost,
                     const std::function<double(const Graph&, const Node&)>& seconds);

}  // namespace dlprim
