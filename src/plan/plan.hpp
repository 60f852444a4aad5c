// SPDX-License-Identifier: MIT
// Plan: a graph that is ready for one device, with engines, layouts, memory and compiled kernels.
// plan/make_plan.hpp makes it, and src/exec replays it.
#pragma once

#include "engine/engine.hpp"
#include "graph/graph.hpp"
#include "plan/trust/trust.hpp"

#include <dlprim/memory_map.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

class ChainProgram;

/// The place of a value in memory.
struct Place {
    enum class Kind : std::uint8_t {
        none,
        slab,      ///< scratch of one run, shared by values with disjoint lifetimes
        block,     ///< memory that is kept between runs
        external,  ///< bound by the caller: inputs, outputs and, in eager calls, parameters
    };
    Kind kind = Kind::none;
    int index = 0;             ///< which slab, block or external binding
    std::uint64_t offset = 0;  ///< bytes
    bool operator==(const Place&) const = default;
};

/// Step::disable_key of joined steps (plan/joined_steps.hpp). If the launch of one failed, steps
/// stay apart on that context.
inline constexpr const char* joined_steps_key = "plan.joined_steps\n";

/// One launch of a plan.
struct Step {
    std::string name;  ///< for profiles: the node's name, or "reorder <value>"
    std::string type;  ///< operator type, or "Reorder", "Pack", "Copy"
    Part part = Part::forward;
    const Engine* engine = nullptr;          ///< nullptr for copies and joined packings
    std::shared_ptr<const Problem> problem;  ///< of the engine; null for copies and joined steps
    bool joined = false;                     ///< several steps (plan/joined_steps.hpp)
    /// Key to disable the engine, or the joining of steps, if a launch fails. Empty for copies.
    std::string disable_key() const;
    std::vector<std::string> fused;
    std::shared_ptr<Launch> launch;  ///< of steps of the same work, on CPUs and the host
    std::vector<Place> operands;     ///< places of operands, resolved by the executor once
    /// Pairs (output, input) of `operands` that may be the same memory: the launch reads an element
    /// of the input before it writes the one at the same place, and no other element there.
    std::vector<std::pair<std::size_t, std::size_t>> in_place;
    std::vector<std::pair<Place, std::uint64_t>> written;  ///< outputs: places and numbers of bytes
    DType written_dtype = DType::f32;                      ///< type of the first output
    double flops = 0;                                      ///< nominal
    double bytes = 0;                                      ///< each operand read or written once
    double bound_seconds = 0;                              ///< roofline bound on this device
};

/// A block of persistent memory. A net's plans share blocks by name, and a block has the same
/// offsets in all of them: "params" (trainable), "gradients" (with the offsets of "params"),
/// "fixed" (other parameters), "states" and "scalars". "constants" (packed and folded weights,
/// literals) belongs to one plan, and "constants of another plan" is that of one that has made
/// values which this plan reads, too (plan/kept_values.hpp). All blocks start as zeros, because
/// solvers, norms and checkpoints also read the gaps between their parts.
struct Block {
    std::string name;
    std::uint64_t bytes = 0;
    /// Of the constants of another plan, or of parameters that another net has filled in.
    std::shared_ptr<Buffer> memory = {};
    bool is_constants() const { return memory || name == "constants"; }
};

/// Memory that the caller binds.
struct External {
    enum class Kind : std::uint8_t { input, output, gradient, parameter };
    Kind kind;
    ValueId value;            ///< gradient: the value whose gradient it is
    std::string name;         ///< the user's name
    Layout layout = {};       ///< of the bound memory; plain unless PlanOptions sets another
    bool setup_only = false;  ///< whether only setup reads the parameter
};

/// Names of scalars in the order of their slots (8 bytes each) in the "scalars" block.
inline constexpr const char* scalar_names[] = {"@seed",        "@step",        "@lr",
                                               "@correction1", "@correction2", "@average_share",
                                               "@squares",     "@overflow"};

/// Steps [first, last) that run in one launch (exec/chain.hpp). Their own programs are compiled
/// only when one of them is launched separately.
struct ChainRange {
    std::size_t first, last;
    std::shared_ptr<const ChainProgram> program;  ///< null if it cannot be made
};

/// The gradient of one parameter in the block of gradients, and where it is complete.
struct GradientMark {
    std::uint64_t begin = 0, end = 0;  ///< bytes of the block, up to the next gradient
    std::size_t last_step = 0;         ///< the last of Plan::steps before the update that uses it
};

struct Plan {
    Graph graph;                       ///< as planned
    std::vector<Place> places;         ///< by ValueId: place of the plain form
    std::vector<std::uint64_t> slabs;  ///< bytes of each scratch slab
    std::vector<Block> blocks;
    std::vector<External> externals;  ///< by Place::index
    std::vector<ValueId> literals;    ///< which lie in blocks "constants"
    std::vector<Step> setup;          ///< run after parameters change: packing, constant folding
    /// By step of setup: whether all that it makes was found in PlanOptions::kept. Such a step runs
    /// only after parameters have changed. Empty: none.
    std::vector<char> setup_found;
    /// The results of setup that runs read, by content, for KeptValues.
    std::vector<std::pair<std::string, Place>> kept;
    std::vector<Step> steps;  ///< run every time: forward, backward, update
    std::vector<ChainRange> chains;
    std::vector<GradientMark> gradient_marks;  ///< in the order of the block; none without one
    std::vector<EngineUse> unchecked;  ///< engines that are checked when chains are compiled
    /// Bytes of slabs, blocks and externals, without externals that only setup reads.
    std::uint64_t peak_bytes = 0;
    /// The same during setup: includes the most bytes that those externals need at once, each from
    /// its first to its last reader.
    std::uint64_t setup_peak_bytes = 0;
    /// The problems of composites that were expanded though they might have stayed whole.
    std::vector<Problem> expanded;
    std::vector<std::string> notes;  ///< such as where --engine TYPE=ENGINE does not apply
    MemoryMap memory_map;            ///< drawn with PlanOptions::over_limit alone
    std::string memory;              ///< report: the largest values with their first and last use
};

}  // namespace dlprim
