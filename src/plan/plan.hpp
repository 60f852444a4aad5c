// SPDX-License-Identifier: MIT
// Plan: a graph made ready for one device: engines chosen, layouts settled, memory laid out, kernels
// compiled. src/exec replays it.
#pragma once

#include "engine/engine.hpp"
#include "graph/graph.hpp"

#include <dlprim/context.hpp>
#include <dlprim/tensor.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlprim {

struct PlanOptions {
    bool fuse = true;  ///< attach epilogues
    /// Forced engines: node name or operator type -> engine name.
    std::vector<std::pair<std::string, std::string>> engines;
    bool tune = false;               ///< measure where the databases know nothing
    std::uint64_t memory_limit = 0;  ///< bytes; 0: the device's
    std::function<void(std::string_view what, int done, int total)> progress;  ///< compiling, tuning
};

/// Where a value lives.
struct Place {
    enum class Kind : std::uint8_t { none, slab, block };
    Kind kind = Kind::none;
    int index = 0;            ///< which slab, or which block (parameters, gradients, states, constants)
    std::uint64_t offset = 0;  ///< bytes
    std::uint64_t bytes = 0;
};

/// One launch of a plan.
struct Step {
    NodeId node = -1;              ///< in Plan::graph; -1 for conversions made by the planner
    std::string name;              ///< for profiles: the node's, or "reorder <value>"
    std::string type;              ///< operator type, or "Reorder"
    const Engine* engine = nullptr;
    std::unique_ptr<Launch> launch;
    std::vector<Place> operands;   ///< where each operand lives; the executor resolves them once
    double flops = 0;              ///< nominal
    double bound_seconds = 0;      ///< roofline on this device
};

/// A block of persistent memory: all parameters of one dtype, their gradients, a solver's moments.
struct Block {
    std::string name;
    std::uint64_t bytes = 0;
    std::vector<ValueId> values;
};

struct Plan {
    Graph graph;  ///< as planned
    std::vector<Place> places;      ///< by ValueId
    std::vector<Layout> layouts;    ///< by ValueId
    std::vector<std::uint64_t> slabs;  ///< bytes of each scratch slab
    std::vector<Block> blocks;
    std::vector<Step> setup;  ///< run once after parameters change: packing, constant folding
    std::vector<Step> steps;  ///< run every time
    std::uint64_t peak_bytes = 0;  ///< slabs and blocks
    std::vector<std::string> notes;  ///< e.g. where --engine TYPE=ENGINE did not apply, and why
};

/// Throws Error: an engine forced on a node that does not apply (with its reason); no engine for a
/// node; out_of_memory with what is needed, by whom, what is there and the largest batch that fits.
std::unique_ptr<Plan> make_plan(const Context& context, Graph graph, const PlanOptions& options = {});

/// One line a value: name, bytes, first and last use; largest first.
std::string memory_report(const Plan& plan, std::size_t lines = 20);

}  // namespace dlprim
