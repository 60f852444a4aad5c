// SPDX-License-Identifier: MIT
// Strided views in a network: values that lie in the memory of others, so that nodes which only
// move elements launch nothing.
//
//     a projection [B, L, H D] - Reshape, Transpose -> heads [B, H, L, D]     read where they lie
//     a packed one - Slice, Reshape, Transpose -> heads                       likewise
//     heads - Transpose -> [B, L, H, D]                    written where the next node reads them
//     three gradients of heads - Transpose, Concat -> one  likewise
//
// This is done only where an engine lists strided layouts of such an operand in Engine::layouts().
// All other readers must take any strides (Engine::addresses_strides). Values that are visible
// outside the graph stay plain.
#pragma once

#include "base/layout.hpp"
#include "engine/engine.hpp"
#include "graph/graph.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

namespace dlprim {

using ValueLayouts = std::map<ValueId, Layout>;

struct StridedViews {
    ValueLayouts layouts;     ///< of values that lie in strides
    std::vector<char> nodes;  ///< by NodeId: whether it launches nothing
};

/// What is known of the engines that may run a node.
struct StrideQuestions {
    /// For a node that only moves elements: the engine, or null if it must run.
    std::function<const Engine*(std::size_t node)> moving_engine;
    std::function<const Problem&(std::size_t node)>
        problem;  ///< of a node that only moves elements, in plain layouts
    /// Whether an engine of the node lists strided layouts.
    std::function<bool(std::size_t node)> lists;
    enum class Takes : std::uint8_t { no, any_strides, listed };
    /// Whether all of the node's engines take the value, which is an input or output of it, as it
    /// lies.
    std::function<Takes(std::size_t node, ValueId value, const ValueLayouts& lying)> takes;
};

/// `constant` is indexed by ValueId, and `bound` has the layouts of values that the caller binds.
StridedViews find_strided_views(const Graph& graph, const std::vector<char>& constant,
                                const ValueLayouts& bound, const StrideQuestions& questions);

}  // namespace dlprim
