// SPDX-License-Identifier: MIT
// Plan: a graph made ready for one device: engines chosen, layouts settled, memory laid out,
// kernels compiled. src/exec replays it.
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
    /// Parameters of at least so many bytes are bound by the caller: in eager calls all of them
    /// (0).
    std::uint64_t bind_params_from = ~std::uint64_t{0};
    /// Layouts in which inputs are bound; plain where there is none. Not packed ones.
    std::map<ValueId, Layout> input_layouts;
    /// Outputs and gradients are left in the layout that their engine writes: External::layout.
    bool free_outputs = false;
    std::int64_t least_narrow = 4096;  ///< elements of what is stored in 16 bits
    double narrow_cost = 1;          ///< times the estimate in float that its nodes may take, then
    std::uint64_t memory_limit = 0;  ///< bytes; 0: the device's
    std::function<void(std::string_view what, int done, int total)>
        progress;             ///< compiling, tuning
    double tune_seconds = 0;  ///< over 0: measures what no database knows, for about so long
    bool chains = false;      ///< looks for chains
    bool build = true;        ///< false: steps get no launch; for looking at what would run
};

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

/// An engine whose kernels do not build is disabled (engine/disabled.hpp), and the next one takes
/// its place; the notes say so. Throws Error: an engine forced on a node that does not apply (with
/// its reason); no engine for a node; out_of_memory with what is needed, by whom, what is there and
/// the largest batch that fits.
std::unique_ptr<Plan> make_plan(const Context& context, Graph graph,
                                const PlanOptions& options = {});

}  // namespace dlprim
