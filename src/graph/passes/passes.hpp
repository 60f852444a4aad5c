// SPDX-License-Identifier: MIT
// The graph passes, in the order in which they run.
#pragma once

#include "graph/graph.hpp"

#include <dlprim/context.hpp>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

/// Whether it is half or bfloat16.
inline bool has_16_bits(DType dtype) {
    return dtype == DType::f16 || dtype == DType::bf16;
}

/// Marks nodes with the engines that the user forces on them, given as (node name or operator type,
/// engine name). A name takes precedence over a type. Call it before passes that replace or merge
/// nodes, which pass the mark on to the new nodes, and again after them for nodes that they added.
void force_engines(Graph& graph, const std::vector<std::pair<std::string, std::string>>& engines);

/// Whether an engine of the device computes a composite in less time than the nodes that it
/// consists of. Asked only of nodes whose operator may_stay_whole().
using WholePays = std::function<bool(const Graph&, const Node&)>;

/// Replaces composites (LSTM, Attention, SoftmaxWithLoss, ...) by the nodes that they consist of,
/// except those for which `whole_pays`; if it is empty, that is none. Operators that do not support
/// 16-bit operands compute in float, between casts.
void expand_composites(Graph& graph, const WholePays& whole_pays = {});

struct DifferentiateOptions {
    bool input_gradients = false;  ///< also for every float input (dlprim_run --grads)
    /// true: each output has a value "@grad/<output>" of role input that the user feeds. false:
    /// each loss starts from its weight at every element, and other outputs have no gradient.
    bool seeds_are_inputs = false;
    ValueId loss_scale = no_value;  ///< [1]: a factor of the losses' initial gradients
    std::vector<ValueId> unwanted;  ///< inputs and parameters that get none
    // Of a part of a larger graph (api/part_border.hpp):
    /// Outputs that other parts read. Each has a value "@grad/<output>" as with seeds_are_inputs.
    std::set<std::string> seeded;
    /// Inputs that later parts read, too. Each has a value "@later/<input>" of role input: what
    /// flowed back from those parts, to which this part adds.
    std::set<std::string> continued;
};
/// Adds the nodes of the backward pass. Afterwards graph.gradients maps trainable parameters (and
/// inputs) to their gradients. If several nodes read a value, one pointwise node sums its
/// gradients; those of parts that lie beside each other are one Concat (gradient_pieces.hpp).
/// Values that the loss does not depend on get a gradient of zeros.
void differentiate(Graph& graph, const DifferentiateOptions& options = {});

/// For inference: folds a BatchNorm that follows a convolution or an InnerProduct into its weights.
/// The nodes for that depend on parameters alone, so the planner runs them once.
void fold_batch_norms(Graph& graph);

/// For inference: lets products of few rows compute the RMSNorm before them, and the gate behind
/// them, where `seconds` says that they take less time so. It estimates a node, and is infinite if
/// no engine supports it.
void join_norms(Graph& graph, const Traits& device,
                const std::function<double(const Graph&, const Node&)>& seconds);

/// Marks products of floats both of whose factors hold bytes, or differences of bytes, so that
/// engines may multiply integers (small_integers_attr).
void mark_small_integers(Graph& graph);

/// Fuses Activation and residual Elementwise sums, as an epilogue, into the node that makes their
/// input, directly or through views, if `accepts` confirms that an engine supports the fused node.
void fuse_epilogues(Graph& graph, const std::function<bool(const Graph&, const Node&)>& accepts);

/// Removes views that undo the views before them.
void join_views(Graph& graph);

/// Calls Operator::lower on every node.
void lower(Graph& graph);

/// Where an operator computes in float between casts from and to 16 bits: lets it read and write 16
/// bits itself, if that takes less time by `seconds`, which estimates a node and is infinite if no
/// engine supports it. If both factors of products have 16 bits, the node gets that precision, in
/// which their products are exact.
void absorb_casts(Graph& graph, const std::function<double(const Graph&, const Node&)>& seconds);

/// Merges chains of Pointwise nodes into one node, which saves memory traffic.
void merge_pointwise(Graph& graph);

/// Lets Pointwise nodes read and write half and bfloat16 themselves, in place of casts around them.
/// Other passes expect float, so this one comes behind those that merge nodes.
void merge_casts(Graph& graph);

/// Recomputes cheap elementwise values in the Pointwise nodes that read them, where that is faster
/// on the device than to pass them through memory and keeps no tensor alive for longer. The graph
/// must not contain tombstones. Returns whether it changed anything: then further nodes may merge,
/// and another call may find more.
bool recompute_pointwise(Graph& graph, const Traits& device);

/// Stores values between nodes of precision fp16 or bf16 in that type. `seconds` estimates a node,
/// and is infinite if no engine supports it. A value is changed only if the nodes that make and
/// read it have engines for it, and together do not take more than `cost` times as long as with the
/// value in float and all others unchanged. Values of fewer than `least` elements are not changed.
/// Neither are parameters and what depends on them alone, their gradients, values that are visible
/// outside the graph, and statistics, which are values much smaller than what they are made from.
/// Passes that expect float come before it.
void lower_precision(Graph& graph, std::int64_t least, double cost,
                     const std::function<double(const Graph&, const Node&)>& seconds);

/// Joins Pointwise nodes that reduce rows with those that go on with the results in the same rows,
/// where the device `runs` the joined node. The nodes may read and write 16 bits.
void join_rows(Graph& graph, const Traits& device,
               const std::function<bool(const Graph&, const Node&)>& runs);

}  // namespace dlprim
