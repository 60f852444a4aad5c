// SPDX-License-Identifier: MIT
// lower: replaces operators that have no engine by nodes that have one.
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"
#include "graph/passes/rewrite.hpp"

namespace dlprim {

void lower(Graph& graph) {
    rewrite_nodes(graph, [](Graph& g, const Node& node, std::vector<ValueId>& outputs) {
        return node.op->lower(g, node, outputs);
    });
    graph.remove_dead();
}

}  // namespace dlprim
