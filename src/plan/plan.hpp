// SPDX-License-Identifier: MIT
// Plan: a graph made ready for one device: engines chosen, layouts settled, memory laid out,
// kernels compiled. plan/make_plan.hpp makes it, src/exec replays it.
#pragma once

#include "engine/engine.hpp"
#include "graph/graph.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

/// Where a value lives.
struct Place {
    enum class Kind : std::uint8_t {
        none,
        slab,      ///< scratch of one run, shared by values that are not alive together
        block,     ///< memory that stays between runs
        external,  ///< bound by the caller: inputs, outputs and, in eager calls, parameters
    };
    Kind kind = Kind::none;
    int index = 0;             ///< which slab, block or external binding
    std::uint64_t offset = 0;  ///< bytes
    bool operator==(const Place&) const = default;
};

/// One launch of a plan.
struct Step {
    std::string name;  ///< for profiles: the node's, or "reorder <value>"
    std::string type;  ///< operator type, or "Reorder", "Pack", "Copy"
    Part part = Part::forward;
    const Engine* engine = nullptr;  ///< nullptr for copies
    std::string disable_key;         ///< of the engine on its problem, should a launch fail
    std::vector<std::string> fused;
    std::unique_ptr<Launch> launch;
    std::vector<Place> operands;  ///< where each operand lives; the executor resolves them once
    std::vector<std::pair<Place, std::uint64_t>> written;  ///< outputs: where and how many bytes
    DType written_dtype = DType::f32;                      ///< of the first output
    double flops = 0;                                      ///< nominal
    double bytes = 0;                                      ///< operands read and written once
    double bound_seconds = 0;                              ///< roofline on this device
};

/// A block of persistent memory. Blocks of one name lie alike in all plans of a net, which share
/// them: "params" (trainable), "gradients" (alike), "fixed" (other parameters), "states",
/// "scalars"; while "constants" (packed and folded weights, literals) belongs to its plan. All
/// start as zeros: solvers, norms and checkpoints read what lies between the parts of a block, too.
struct Block {
    std::string name;
    std::uint64_t bytes = 0;
};

/// Something that the caller binds.
struct External {
    enum class Kind : std::uint8_t { input, output, gradient, parameter };
    Kind kind;
    ValueId value;            ///< gradient: the value whose gradient it is
    std::string name;         ///< the user's
    Layout layout = {};       ///< in which it is bound; plain unless PlanOptions says otherwise
    bool setup_only = false;  ///< a parameter that no step reads as it is, but setup alone
};

/// Names of scalars by their slot (8 bytes each) in the "scalars" block.
inline constexpr const char* scalar_names[] = {"@seed", "@step", "@lr", "@correction1",
                                               "@correction2"};

/// Steps [first, last) that run as one launch (exec/chain.hpp). Their own programs are not compiled
/// until someone launches one alone.
struct ChainRange {
    std::size_t first, last;
};

struct Plan {
    Graph graph;                       ///< as planned
    std::vector<Place> places;         ///< by ValueId, of the plain form
    std::vector<std::uint64_t> slabs;  ///< bytes of each scratch slab
    std::vector<Block> blocks;
    std::vector<External> externals;  ///< what the caller binds, by Place::index
    std::vector<std::pair<ValueId, std::uint64_t>> literals;  ///< and their offsets in "constants"
    std::vector<Step> setup;  ///< run once after parameters change: packing, constant folding
    std::vector<Step> steps;  ///< run every time: forward, backward, update
    std::vector<ChainRange> chains;
    /// Slabs, blocks and externals, without those that setup alone reads.
    std::uint64_t peak_bytes = 0;
    /// The same while setup runs: with the most that the latter take between the first and the last
    /// step that reads each.
    std::uint64_t setup_peak_bytes = 0;
    std::vector<std::string> notes;  ///< e.g. where --engine TYPE=ENGINE did not apply, and why
    std::string memory;              ///< report: the largest values with first and last use
};

}  // namespace dlprim
