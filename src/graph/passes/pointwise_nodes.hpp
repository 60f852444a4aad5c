// SPDX-License-Identifier: MIT
// PointwiseNodes: shared by the passes that move work between Pointwise nodes. Knows who reads
// which value and which nodes may be changed, and substitutes a producer's expression for an input.
#pragma once

#include "base/attrs.hpp"
#include "engine/pointwise/program.hpp"
#include "graph/graph.hpp"

#include <limits>
#include <map>
#include <optional>
#include <vector>

namespace dlprim {

/// The computation of a Pointwise node, existing or planned: a program without scalar parameters
/// over distinct inputs.
struct PointwiseDraft {
    pointwise::Program program;
    std::vector<ValueId> inputs;  ///< x0, x1, ...
    Attrs attrs;                  ///< of a node that computes this
};

class PointwiseNodes {
  public:
    /// The reader of values that are visible outside the graph: outputs, gradients, states.
    static constexpr NodeId outside = std::numeric_limits<NodeId>::max();

    /// The graph must not contain tombstones. Until it is sorted again, nodes may be removed but
    /// not added.
    explicit PointwiseNodes(Graph& graph);

    /// Whether it is a Pointwise node on float tensors on which no engine is forced by name. Masks
    /// may be boolean, and single values (seeds, steps) may have other types, because a merged
    /// program keeps the arithmetic of its parts.
    bool is_free(NodeId id) const;
    /// In rising order, each once.
    const std::vector<NodeId>& readers(ValueId value) const { return readers_[at(value)]; }
    /// Whether the value depends on parameters and literals alone, and so is computed once rather
    /// than in every run.
    bool is_fixed(ValueId value) const { return fixed_[at(value)] != 0; }
    /// The broadcast shape that a node works over.
    Shape shape_of(const Node& node) const;

    /// What the node computes now; valid until it changes.
    const PointwiseDraft& draft_of(NodeId id) const;
    /// Returns `draft`, which node `id` is to compute, with the expression of the free node that
    /// makes `value` in place of that input. Returns nothing if that is impossible or the program
    /// becomes too long.
    std::optional<PointwiseDraft> taken_in(NodeId id, const PointwiseDraft& draft,
                                           ValueId value) const;
    double bytes_of(ValueId value) const;
    /// Whether a tensor is large enough to matter compared with `whole`; per-channel tensors are
    /// not.
    bool is_big(ValueId value, const Shape& whole) const {
        return graph_.shape(value).numel() * 8 > whole.numel();
    }
    /// Whether removing node `id`, which has one output, would keep tensors in memory for longer
    /// than its output is now. `wanted` maps each tensor to the last node that would read it
    /// instead of that output.
    bool keeps_more(NodeId id, const std::map<ValueId, NodeId>& wanted) const;
    /// Makes node `id` compute `draft`. `producer` is a node that was merged into it completely;
    /// its name is added to `fused`.
    void change(NodeId id, PointwiseDraft draft, NodeId producer = outside);
    void remove(NodeId id);

  private:
    static std::size_t at(int id) { return static_cast<std::size_t>(id); }
    void add_reader(ValueId value, NodeId id);
    void remove_reader(ValueId value, NodeId id) { std::erase(readers_[at(value)], id); }
    NodeId last_reader(ValueId value) const;
    int distance(NodeId from, NodeId to) const;
    bool same_outputs(const Node& node, const PointwiseDraft& draft) const;

    Graph& graph_;
    std::vector<std::vector<NodeId>> readers_;  ///< by ValueId
    std::vector<char> fixed_;                   ///< by ValueId
    mutable std::vector<std::optional<PointwiseDraft>>
        drafts_;  ///< by NodeId; parsed when asked for
};

}  // namespace dlprim
