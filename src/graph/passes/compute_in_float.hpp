// SPDX-License-Identifier: MIT
// compute_in_float: operators over half and bfloat16 tensors that no engine takes as they are.
#pragma once

#include "graph/graph.hpp"

#include <map>
#include <utility>
#include <vector>

namespace dlprim {

/// A rewrite rule (rewrite.hpp) with what it remembers from node to node of one graph.
class ComputeInFloat {
  public:
    /// Of an operator whose float_types() leave out 16 bits, over tensors of 16 bits: the same
    /// operator over casts of them to float, its results cast to the types that it has. The whole
    /// of it, gradients too, rounds to 16 bits once. Returns false for others. Throws
    /// Error(unsupported) where double tensors reach an operator that computes in float alone.
    bool rewrite(Graph& graph, const Node& node, std::vector<ValueId>& outputs);

    /// Assignments to casts of parameters (running statistics) become assignments to those
    /// parameters. To be called when all nodes have been rewritten.
    static void assign_parameters(Graph& graph);

  private:
    ValueId widened(Graph& graph, const Node& node, ValueId value);

    /// A value in float: one cast for all its readers of a part.
    std::map<std::pair<Part, ValueId>, ValueId> casts_;
};

}  // namespace dlprim
