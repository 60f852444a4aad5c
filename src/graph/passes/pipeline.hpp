// SPDX-License-Identifier: MIT
// The pipeline of graph passes, from a described graph to the choice of engines. Only pipeline.cpp
// lists the passes in their order. A new pass consists of a file and a line there.
//
// There are two stages. derive() makes the nodes of a training step, which do not depend on the
// device. Its caller may then inspect the graph and remove outputs. fit_to_device() is called by
// the planner, which starts again from the derived graph if an engine has failed.
#pragma once

#include "graph/passes/passes.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

/// What a solver adds to a graph (train/update.hpp), as functions, because this room does not know
/// solvers. Empty functions add nothing.
struct SolverPasses {
    /// Called before differentiation. Returns the factor of losses, or no_value.
    std::function<ValueId(Graph&)> add_loss_scale;
    /// Called after differentiation, with the result of add_loss_scale. Adds the nodes of the
    /// update.
    std::function<void(Graph&, ValueId loss_scale)> add_update;
};

struct DeriveOptions {
    /// Forced engines: node name or operator type -> engine name.
    std::vector<std::pair<std::string, std::string>> engines;
    /// If it is set, the graph gets a backward part.
    std::optional<DifferentiateOptions> gradients;
    SolverPasses solver;
    /// Asked where gradients follow. Empty: all composites are expanded then.
    WholePays whole_pays;
};

/// Replaces composites by their nodes, and adds backward and update. Without gradients, composites
/// that may stay whole do so until fit_to_device().
void derive(Graph& graph, const DeriveOptions& options);

/// Facts about the device and its engines for the second stage, as functions, because this room
/// does not know engines.
struct FitOptions {
    const Traits& device;
    std::vector<std::pair<std::string, std::string>> engines;  ///< as in DeriveOptions
    bool fuse = true;                                          ///< false: nodes are not fused
    WholePays whole_pays;  ///< empty: all composites are expanded
    /// Whether some engine supports the node with its epilogue, and that is not slower.
    std::function<bool(const Graph&, const Node&)> fused_node_pays;
    /// The estimate for nodes that join_norms and join_rows have made: infinite if no engine
    /// supports them. Empty: no nodes are joined.
    std::function<double(const Graph&, const Node&)> joined_seconds;
    /// The estimate for absorb_casts and lower_precision. Empty: values keep their types.
    std::function<double(const Graph&, const Node&)> least_seconds;
    std::int64_t least_narrow = 0;  ///< lower_precision's `least`
    double narrow_cost = 1;         ///< lower_precision's `cost`
};

/// Rewrites the graph to the nodes that the device's engines compute fastest.
void fit_to_device(Graph& graph, const FitOptions& options);

}  // namespace dlprim
