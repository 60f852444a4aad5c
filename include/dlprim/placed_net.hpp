// SPDX-License-Identifier: MIT
// PlacedNet: a Net whose operators run on several devices of this host. Operators of the JSON name
// their device ("device": "a"), and the program binds these names to contexts. PlacedSolver trains
// such a network. What follows is said of both beside what holds for any Net and Solver.
//
// Method: operators that follow each other on one device are a part of the network, which is
// planned like a Net. A value that another device reads moves once to that device, after the part
// that makes it; its gradient comes back by the same way. Parameters, and what a solver keeps of
// them, lie on the device of their operator. Parts run one after the other, in the order of the
// JSON, but work at once on the shards of a batch (SolverOptions::shards): while a part computes a
// shard, the next one computes the shard before (1F1B; Narayanan et al. 2021). A Team
// (dlprim/team.hpp), of whose devices each has the whole network, needs no such schedule.
//
// Bits: with the same engines, layouts and fusions, outputs, gradients and updates have the bits of
// one Net on one device. A border may change the planner's choice of them, and so last bits
// (docs/placement.md).
//
// Ownership: a PlacedNet owns its parts, with their parameters and memory. A PlacedSolver shares
// them, and each may outlive the other. A PlacedNet can be moved.
//
// Threads: one thread at a time, for all nets of all its contexts together (dlprim/context.hpp). A
// solver with shards has a thread for each device, which works within step() alone.
//
// Waiting: calls enqueue work. But a value that moves to another device is waited for, and with
// shards the call of step() that computes a batch waits for all moves.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/internal.hpp>
#include <dlprim/memory_map.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/net.hpp>
#include <dlprim/solver.hpp>
#include <dlprim/solver_options.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// A device, by the name that operators give it. Two may have one context.
struct NamedDevice {
    std::string name;
    Context context;
};

/// Where operators run, other than on the devices that they name in the JSON.
struct PlacementOptions {
    /// Operators that name no device get the one that an estimate says is best for the time of a
    /// batch, within the memory of each (docs/placement.md). Otherwise they get the first one.
    bool automatic = false;
    /// With `automatic`: compiles and runs the network a few times on each device that has the
    /// memory for it, and copies between devices, in place of taking times from peaks and from the
    /// numbers below. Takes longer, knows more, and may choose otherwise the next time.
    bool measure = false;
    /// The bytes that parts may take on a device, by its name. Others may take all of its memory.
    std::map<std::string, std::uint64_t> memory_limits;
    /// What is going to train the net, if anything: its memory and the time of its update count.
    std::optional<SolverOptions> solver;
    /// How long a move between two devices takes, unless it is measured.
    double link_seconds = 50e-6;   ///< however small it is
    double link_gbytes_per_s = 8;  ///< and by its size, in 10^9 bytes per second
};

class PlacedNetImpl;

/// Calls of Net differ from those of a net on one device in this:
/// - input() lies on the device of its first reader; outputs, parameters and gradients lie where
///   they are made or used.
/// - set_input() is for every device that reads the input. With a solver that takes shards, the
///   data are those of the next shard and of those after it. They are kept in memory of the host,
///   and what is written to input() is not read.
/// - load_weights() and save_weights() have the files of any Net: each loads what the other saves.
/// - prepare() throws Error(out_of_memory) where what is planned for a device exceeds its memory or
///   limit: which part is the largest, and how many bytes are missing. The first forward(), and a
///   solver, check the same.
/// - nodes() and notes() tell of all parts, in their order.
class PlacedNet : public Net {
  public:
    /// Operators that name no device run on the first one. An operator for which its device has no
    /// engine runs on the host, and notes() says so; the host is one of the devices then, or is
    /// added as "host". Plans, without compiling or allocating.
    ///
    /// Of NetOptions, output_gradients and memory_limit are not for placed networks. Throws
    /// Error(invalid_argument) for these; for a device name of the JSON that is not bound; for
    /// names that are bound twice or empty; for limits of names that are not bound; where operators
    /// of two parts share a parameter; and what Net::from_json() throws. Automatic placement throws
    /// Error(out_of_memory) for an operator that fits on no device, with the bytes that it lacks,
    /// and where it finds no placement within the limits.
    static PlacedNet from_json_file(const std::vector<NamedDevice>& devices,
                                    const std::string& path, const NetOptions& options = {},
                                    const PlacementOptions& placement = {});
    static PlacedNet from_json(const std::vector<NamedDevice>& devices, std::string_view text,
                               const NetOptions& options = {},
                               const PlacementOptions& placement = {});

    /// Operators that run together.
    struct Part {
        std::string device;
        std::vector<std::string> operators;  ///< names, in their order
        /// What automatic placement has reckoned with, in a batch; 0: there was none.
        double estimated_ms = 0;
        std::uint64_t estimated_bytes = 0;  ///< peak memory of the part's plan, likewise
    };
    std::vector<Part> parts() const;  ///< in the order in which forward runs them
    /// Names of those that are bound, and of the host if it was added.
    std::vector<std::string> device_names() const;
    /// Throws Error(not_found).
    const Context& device(const std::string& name) const;

    /// What moves between devices in each forward and backward. With shards, inputs of the network
    /// go to each device from memory of the host, so that their moves are not counted.
    struct Move {
        std::string value;  ///< the name of the value that moves, or whose gradient does
        bool gradient = false;
        std::string from, to;  ///< names of devices
        std::uint64_t bytes = 0;
        std::uint64_t times = 0;  ///< how often it has moved so far
    };
    std::vector<Move> moves() const;

    /// Peak memory of each device in bytes, by name, while batches run: plans of its parts, and
    /// copies of values that move there. Known before anything is compiled or allocated. With
    /// `solver`, that of training steps, with what each shard in flight takes; without it, that of
    /// the PlacedSolver on this net, if any. A context with two names counts for the first.
    std::map<std::string, std::uint64_t> planned_peak_bytes(const SolverOptions* solver = nullptr);
    /// What that memory is for, by device and part.
    struct PartMemory {
        std::size_t part = 0;  ///< index in parts()
        /// Of a step of the part alone, in one working set.
        MemoryMap map;
        int working_sets = 1;     ///< how many of them there are: shards in flight
        std::uint64_t bytes = 0;  ///< of all, without what crosses borders
    };
    struct DeviceMemory {
        std::string name;
        std::uint64_t peak_bytes = 0;    ///< as planned_peak_bytes() says
        std::uint64_t border_bytes = 0;  ///< of it: what crosses borders, of all shards in flight
        std::uint64_t limit_bytes = 0;   ///< PlacementOptions::memory_limits, or all that it has
        std::vector<PartMemory> parts;   ///< those that run there
    };
    /// `solver` as for planned_peak_bytes().
    std::vector<DeviceMemory> plan_memory(const SolverOptions* solver = nullptr);

  private:
    friend class internal::Access;
    explicit PlacedNet(std::shared_ptr<PlacedNetImpl> impl);
    PlacedNetImpl& impl() const;
};

/// The Solver of a PlacedNet: every part has one of its own, whose steps they make together. With
/// SolverOptions::shards the net has the batch of one shard, as with any Solver, and all parts work
/// at once: the calls of step() before the last one of a batch only take the inputs of a shard, and
/// the last one computes all of them. A step has the bits of one device. A Solver that is made on a
/// PlacedNet is the same.
///
/// Each part has memory for each shard in flight there: at most 2 f + 1 where f parts follow. With
/// clip_norm or a loss scale, an update waits for all devices, since it depends on all gradients.
/// Where a device fails, step() throws its first error, with the device's name, when all devices
/// have stopped. The batch is then undone as a whole; what failed may be mended, and the batch be
/// fed again.
///
/// With SolverOptions::guard_loss a step waits for its losses before it updates any part. If one is
/// not finite, the step changes nothing, and later steps compute nothing. call_off() ends that: it
/// undoes the bad step and all those after it, whose number it must be given.
class PlacedSolver : public Solver {
  public:
    /// Throws Error(invalid_argument) for what it does not do: state_parts; with shards batch norms
    /// with "sync"; and a loss scale, as operators in fp16 have it, where a loss is made by a part
    /// without trained parameters. Throws what Solver's constructor throws, and
    /// Error(out_of_memory) as PlacedNet::prepare() does.
    PlacedSolver(PlacedNet& net, const SolverOptions& options) : Solver(net, options) {}
};

}  // namespace dlprim
