// SPDX-License-Identifier: MIT
// join_views: a view that undoes the views before it is the value that they began with. Importers
// of one-dimensional convolutions make such pairs, and a layout of images does not pass a view.
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"

#include <algorithm>

namespace dlprim {

namespace {

/// The value of the same shape that `id` shows through views, or no_value.
ValueId undone(const Graph& graph, ValueId id) {
    for (ValueId at = id;;) {
        const NodeId producer = graph.value(at).producer;
        if (producer < 0) return no_value;
        const Node& node = graph.nodes[static_cast<std::size_t>(producer)];
        if (!node.op->is_view()) return no_value;
        at = node.inputs[0];
        if (graph.spec(at) == graph.spec(id)) return at;
    }
}

}  // namespace

void join_views(Graph& graph) {
    bool any = false;
    for (Node& node : graph.nodes) {
        if (node.removed || !node.op->is_view()) continue;
        const ValueId y = node.outputs[0];
        const bool is_output = std::any_of(graph.outputs.begin(), graph.outputs.end(),
                                           [&](const auto& output) { return output.first == y; });
        const ValueId x = is_output ? no_value : undone(graph, y);
        if (x == no_value) continue;
        node.removed = any = true;
        graph.replace_uses(y, x);
    }
    if (any) graph.sort();
}

}  // namespace dlprim
