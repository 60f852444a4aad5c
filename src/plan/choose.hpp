// SPDX-License-Identifier: MIT
// Choice of an engine and its layouts for every node of a graph, by cost over the whole graph.
#pragma once

#include "engine/engine.hpp"
#include "graph/graph.hpp"
#include "plan/plan.hpp"

#include <functional>
#include <string>
#include <vector>

namespace dlprim {

/// What a node was given. Nodes of view operators have no engine.
struct Choice {
    const Engine* engine = nullptr;
    Tuning tuning;
    Problem problem;  ///< with its layouts set
};

/// The problem that a node poses on a device, all layouts plain. `constant` by ValueId. Its
/// precision is the node's where an engine that applies has a way for it; in place of fp16 and bf16
/// tf32, where there is one for that; else fp32.
Problem problem_of(const Traits& device, const Graph& graph, const Node& node,
                   const std::vector<char>& constant);

/// The problem with its operands in the layouts of a choice.
Problem with_layouts(Problem problem, const LayoutChoice& layouts);

/// What a row of the databases says of an engine that can be used and offers that row's tuning.
struct KnownTuning {
    const Engine* engine = nullptr;
    Tuning tuning;
    LayoutChoice layouts;
    double seconds = 0;
};
/// Those of a problem (without layouts), the fastest first. Rows are files' and may name anything:
/// for each that no engine offers, `passed_over` gets the reason.
std::vector<KnownTuning> known_tunings(
    ContextImpl& context, const Problem& problem,
    const std::function<void(const std::string&)>& passed_over = nullptr);

/// Which values do not change between runs unless parameters are written: parameters that no
/// assignment targets, literals, and what depends on them alone.
std::vector<char> constant_values(const Graph& graph);

/// Whether some engine of the device can run the node, and not at a price over doing without its
/// last epilogue stage. The test that fuse_epilogues asks.
bool fused_node_pays(ContextImpl& context, const Graph& graph, const Node& node);

/// What the fastest engine takes for the node by its estimate, in the best layout and without
/// conversions; infinity where none applies. What lower_precision asks.
double least_seconds(ContextImpl& context, const Graph& graph, const Node& node,
                     const std::vector<char>& constant);

/// Whether activations of fp16 and bf16 are stored in 16 bits: on GPUs. On CPUs the fast engines,
/// those of blocked layouts, compute on float vectors as they lie in memory.
bool stores_narrow(const Traits& device);

/// The choices, one a node. Throws Error naming the node and every engine's reason where none
/// applies, and where a forced engine does not apply. `notes` gets remarks.
std::vector<Choice> choose_engines(ContextImpl& context, const Graph& graph,
                                   const std::vector<char>& constant, const PlanOptions& options,
                                   std::vector<std::string>& notes);

/// Seconds for turning a value from one layout to another.
double conversion_seconds(const Traits& device, const Operand& operand, const Layout& from,
                          const Layout& to);

}  // namespace dlprim
