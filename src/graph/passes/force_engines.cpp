// SPDX-License-Identifier: MIT
// force_engines.
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"

namespace dlprim {

void force_engines(Graph& graph, const std::vector<std::pair<std::string, std::string>>& engines) {
    for (const auto& [what, engine] : engines) {
        for (Node& node : graph.nodes) {
            if (node.removed) continue;
            const bool named = node.name == what;
            if (!named && !is_named(node, what)) continue;
            graph.forced.insert(what);
            if (!named && !node.engine.empty()) continue;
            node.engine = engine;
            node.engine_from = what;
            node.engine_by_type = !named;
        }
    }
}

}  // namespace dlprim
