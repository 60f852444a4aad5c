// SPDX-License-Identifier: MIT
// PointwiseNodes: what passes that move work between Pointwise nodes share: who reads what, which
// nodes may be changed, and programs with a producer's expression in the place of an input.
#pragma once

#include "base/attrs.hpp"
#include "engine/pointwise/program.hpp"
#include "graph/graph.hpp"

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace dlprim {

/// What a Pointwise node computes, or would: a program without scalar parameters over distinct
/// inputs.
struct PointwiseDraft {
    pointwise::Program program;
    std::vector<ValueId> inputs;  ///< x0, x1, ...
    Attrs attrs;                  ///< of a node that computes this
};

class PointwiseNodes {
  public:
    /// Reader of what somebody outside of the graph sees: outputs, gradients, states.
    static constexpr NodeId outside = std::numeric_limits<NodeId>::max();

    /// The graph holds no tombstones; until it is sorted again, nodes may be removed, not added.
    explicit PointwiseNodes(Graph& graph);

    /// A Pointwise node on float tensors that no engine is forced on by name. Single values (seeds,
    /// steps) may be of other types: the arithmetic of merged programs is that of their parts.
    bool is_free(NodeId id) const;
    const std::set<NodeId>& readers(ValueId value) const { return readers_[at(value)]; }
    /// Made of parameters and literals alone: once, not at every run.
    bool is_fixed(ValueId value) const { return fixed_[at(value)] != 0; }
    /// The broadcast shape that a node works over.
    Shape shape_of(const Node& node) const;

    /// What the node computes now; valid until it changes.
    const PointwiseDraft& draft_of(NodeId id) const;
    /// `draft`, which is to be computed by node `id`, with the expression of the free node that
    /// makes `value` instead of reading it; nothing where that cannot be, or grows too long.
    std::optional<PointwiseDraft> taken_in(NodeId id, const PointwiseDraft& draft,
                                           ValueId value) const;
    double bytes_of(ValueId value) const;
    /// Whether a tensor is of a size that matters beside `whole`; per-channel ones are not.
    bool is_big(ValueId value, const Shape& whole) const {
        return graph_.shape(value).numel() * 8 > whole.numel();
    }
    /// Whether without node `id`, of one output, tensors would have to be kept for more than that
    /// output takes now: `wanted` gives the last of those to read them that compute it themselves.
    bool keeps_more(NodeId id, const std::map<ValueId, NodeId>& wanted) const;
    /// Makes node `id` compute `draft`. `producer`: what went into it for good; its name is kept.
    void change(NodeId id, PointwiseDraft draft, NodeId producer = outside);
    void remove(NodeId id);

  private:
    static std::size_t at(int id) { return static_cast<std::size_t>(id); }
    NodeId last_reader(ValueId value) const;
    int distance(NodeId from, NodeId to) const;
    bool same_outputs(const Node& node, const PointwiseDraft& draft) const;

    Graph& graph_;
    std::vector<std::set<NodeId>> readers_;  ///< by ValueId
    std::vector<char> fixed_;                ///< by ValueId
    mutable std::vector<std::optional<PointwiseDraft>>
        drafts_;  ///< by NodeId; parsed when asked for
};

}  // namespace dlprim
