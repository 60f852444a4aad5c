// SPDX-License-Identifier: MIT
// compute_in_float: handles operators on half and bfloat16 tensors that no engine supports
// directly.
#pragma once

#include "graph/graph.hpp"

#include <map>
#include <utility>
#include <vector>

namespace dlprim {

/// A rewrite rule (rewrite.hpp), with the state that it keeps while it visits the nodes of one
/// graph.
class ComputeInFloat {
  public:
    /// If an operator has 16-bit tensors and its float_types() exclude 16 bits: applies the same
    /// operator to its inputs cast to float, casts the results back, and returns true. So the
    /// operator and its gradient round to 16 bits only once. Returns false for other operators.
    /// Throws Error(unsupported) if an operator that computes only in float gets double tensors.
    bool rewrite(Graph& graph, const Node& node, std::vector<ValueId>& outputs);

    /// Replaces assignments to casts of parameters (running statistics) by assignments to the
    /// parameters. Call it after all nodes have been rewritten.
    static void assign_parameters(Graph& graph);

  private:
    ValueId widened(Graph& graph, const Node& node, ValueId value);

    /// A value cast to float. All readers in the same part share one cast.
    std::map<std::pair<Part, ValueId>, ValueId> casts_;
};

}  // namespace dlprim
