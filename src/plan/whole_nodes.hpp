// SPDX-License-Identifier: MIT
// WholeNodes: whether an engine computes a composite in less time than the nodes that it consists
// of.
#pragma once

#include "graph/passes/passes.hpp"
#include "plan/choose.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace dlprim {

class WholeNodes {
  public:
    /// `gradients`: how the graph will be differentiated afterwards, if it will be. Then the
    /// gradients' nodes count, too.
    explicit WholeNodes(ContextImpl& context, std::optional<DifferentiateOptions> gradients = {})
        : context_(context), gradients_(std::move(gradients)) {}
    /// Judged by estimates, for a node whose operator may_stay_whole(). If an engine is forced on
    /// the node, it stays whole for an engine of its own and is expanded for one of another
    /// operator.
    bool pays(const Graph& graph, const Node& node);
    /// The problems for which it did not, for tests that try every engine.
    std::vector<Problem> expanded() const;

  private:
    bool decide(const Graph& graph, const Node& node, const Problem& problem) const;
    /// The estimate for the node alone and, if wanted, its gradients; infinity if no engine
    /// supports one of their nodes.
    double seconds(const Graph& graph, const Node& node, bool whole) const;
    /// Whether differentiation will ask for the gradient of a value.
    bool is_wanted(const Graph& graph, ValueId value) const;

    ContextImpl& context_;
    std::optional<DifferentiateOptions> gradients_;
    ProblemMap<bool> known_;  ///< the layers of a network pose few problems
};

}  // namespace dlprim
