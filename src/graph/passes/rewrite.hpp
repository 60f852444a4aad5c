// SPDX-License-Identifier: MIT
// rewrite_nodes: the loop that passes share which replace a node by others.
#pragma once

#include "graph/graph.hpp"

#include <functional>

namespace dlprim {

/// Adds nodes that make what `node` makes, names their values in `outputs` (one an output; no_value
/// for one that nobody reads) and returns true; or returns false and changes nothing.
using RewriteRule = std::function<bool(Graph&, const Node& node, std::vector<ValueId>& outputs)>;

/// Applies the rule to every node, the new ones included, until none applies; keeps the graph
/// sorted.
void rewrite_nodes(Graph& graph, const RewriteRule& rule);

}  // namespace dlprim
