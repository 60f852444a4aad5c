// SPDX-License-Identifier: MIT
// rewrite_nodes: the loop shared by passes that replace a node by others.
#pragma once

#include "graph/graph.hpp"

#include <functional>

namespace dlprim {

/// Adds nodes that make what `node` makes, writes their values to `outputs` (one per output;
/// no_value if nobody reads it), and returns true. Or returns false and changes nothing.
using RewriteRule = std::function<bool(Graph&, const Node& node, std::vector<ValueId>& outputs)>;

/// Applies the rule to every node, including new ones, until it applies to none. Keeps the graph
/// sorted.
void rewrite_nodes(Graph& graph, const RewriteRule& rule);

}  // namespace dlprim
