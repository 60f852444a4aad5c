// SPDX-License-Identifier: MIT
// The pipeline of graph passes: what a described graph goes through until engines are chosen for
// it. pipeline.cpp lists the passes in their order, and nobody else does: a new pass is a file and
// a line there.
//
// There are two stages. derive() makes the nodes of a training step, whatever the device; who calls
// it may look at the graph and take outputs away. fit_to_device() is the planner's, which starts
// again from the derived graph when an engine has failed.
#pragma once

#include "graph/passes/passes.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

/// What a solver adds to a graph (train/update.hpp); this room knows no solver. Empty: nothing.
struct SolverPasses {
    /// Before differentiation: the value that losses are multiplied by, or no_value.
    std::function<ValueId(Graph&)> add_loss_scale;
    /// After it: the nodes of the update. Gets what add_loss_scale returned.
    std::function<void(Graph&, ValueId loss_scale)> add_update;
};

struct DeriveOptions {
    /// Forced engines: node name or operator type -> engine name.
    std::vector<std::pair<std::string, std::string>> engines;
    /// The graph gets a backward part, unless there is none.
    std::optional<DifferentiateOptions> gradients;
    SolverPasses solver;
};

/// Composites become their nodes, and backward and update are added.
void derive(Graph& graph, const DeriveOptions& options);

/// What the second stage is told of the device and its engines, which this room does not know.
struct FitOptions {
    const Traits& device;
    std::vector<std::pair<std::string, std::string>> engines;  ///< as in DeriveOptions
    bool fuse = true;  ///< false: nodes stay launches of their own
    /// Whether some engine runs the node with its epilogue, and that pays.
    std::function<bool(const Graph&, const Node&)> fused_node_pays;
    /// What lower_precision asks. Empty: values between nodes are stored as they are.
    std::function<double(const Graph&, const Node&)> least_seconds;
    std::int64_t least_narrow = 0;  ///< lower_precision's `least`
    double narrow_cost = 1;         ///< lower_precision's `cost`
};

/// Nodes become those that the device's engines run best.
void fit_to_device(Graph& graph, const FitOptions& options);

}  // namespace dlprim
