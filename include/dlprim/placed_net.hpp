// SPDX-License-Identifier: MIT
// PlacedNet: a network whose operators run on several devices of this host. Operators of the JSON
// name their device ("device": "a"), and the program binds these names to contexts. PlacedSolver
// trains such a network.
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
#include <dlprim/solver_options.hpp>
#include <dlprim/tensor.hpp>
#include <dlprim/tensor_file.hpp>

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
class PlacedSolverImpl;

class PlacedNet {
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
    ~PlacedNet();
    PlacedNet(PlacedNet&&) noexcept;
    PlacedNet& operator=(PlacedNet&&) noexcept;

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

    // As for a Net. Orders are those of the JSON.
    std::vector<std::string> input_names() const;
    std::vector<std::string> output_names() const;
    std::vector<std::string> loss_names() const;
    std::vector<std::string> param_names() const;
    bool is_trainable(const std::string& param) const;
    Shape input_shape(const std::string& name) const;
    DType input_dtype(const std::string& name) const;
    /// The number of classes, if the input holds class numbers; else 0. Plans the net.
    std::int64_t label_classes(const std::string& input);

    // The network's own tensors, as for a Net. An input lies on the device of its first reader;
    // outputs, parameters and gradients lie where they are made or used. Throw Error(not_found).
    Tensor input(const std::string& name);
    Tensor output(const std::string& name);
    Tensor param(const std::string& name);
    Tensor gradient(const std::string& param_or_input);

    /// As Net::set_input(), for every device that reads the input. With a solver that takes shards,
    /// the data are those of the next shard and of those after it. They are kept in memory of the
    /// host, and what is written to input() is not read.
    void set_input(const std::string& name, const void* data, std::uint64_t bytes);

    // As for a Net, and with its files: each loads what the other saves.
    void initialize(std::string_view method = "default");
    void load_weights(const std::string& path, bool missing_ok = false);
    void save_weights(const std::string& path);
    HostTensor read_param(const std::string& name);
    void write_params(std::map<std::string, HostTensor> values, bool missing_ok = false);
    void params_changed();

    /// Plans, compiles and allocates. Throws what Net::prepare() throws, and Error(out_of_memory)
    /// where what is planned for a device exceeds its memory or limit: which part is the largest,
    /// and how many bytes are missing. The first forward(), and PlacedSolver, check the same.
    void prepare();
    void forward();
    void backward();
    /// As Net::first_nan(), of the inputs that were set last.
    std::string first_nan();

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
    /// Remarks on the placement, and of the planner: a sentence each. Plans and compiles.
    std::vector<std::string> notes();

  private:
    friend class internal::Access;
    explicit PlacedNet(std::shared_ptr<PlacedNetImpl> impl);
    PlacedNetImpl& impl() const;
    std::shared_ptr<PlacedNetImpl> impl_;  ///< shared with the solver; null when moved from
};

/// Trains a PlacedNet: every part has a Solver, whose steps they make together. With
/// SolverOptions::shards the net has the batch of one shard, as with a Solver, and all parts work
/// at once. A step has the bits of a Solver with as many shards.
class PlacedSolver {
  public:
    /// Attaches to a net in training mode, as Solver does. With shards, each part has memory for
    /// each shard in flight there: at most 2 f + 1 where f parts follow. Throws
    /// Error(invalid_argument) for what it does not do: state_parts; with shards batch norms with
    /// "sync"; and a loss scale, as operators in fp16 have it, where a loss is made by a part
    /// without trained parameters. Throws what Solver's constructor throws, and
    /// Error(out_of_memory) as PlacedNet::prepare() does.
    PlacedSolver(PlacedNet& net, const SolverOptions& options);
    ~PlacedSolver();
    PlacedSolver(const PlacedSolver&) = delete;
    PlacedSolver& operator=(const PlacedSolver&) = delete;

    /// Forward, backward and, at every SolverOptions::accumulate-th call, the update. With
    /// clip_norm or a loss scale, an update waits for all devices: it depends on all gradients.
    ///
    /// With shards each call is for the next shard of a batch, whose inputs the net has. The calls
    /// before the last one only take these inputs. The last one computes all shards and makes the
    /// update; outputs are then those of the last shard (output_of_batch() has all), but losses,
    /// gradients and running statistics are means, as after Solver::step(). Where a device fails,
    /// that call throws its first error, with the device's name, when all devices have stopped. The
    /// batch is then undone as a whole; what failed may be mended, and the batch be fed again.
    void step();
    /// The tensor that holds this output of the whole batch after each later step: with S shards it
    /// has S times as many rows, those of the shards in their order, in memory of the output's
    /// device that is taken now, beside planned_peak_bytes(). Of a loss, which is a mean over the
    /// shards, and without shards it is PlacedNet::output(). Throws Error(not_found), and
    /// Error(invalid_argument) for an output without dimensions that is no loss.
    Tensor output_of_batch(const std::string& name);
    /// With SolverOptions::guard_loss a step waits for its losses before it updates any part. If
    /// one is not finite, the step changes nothing, and later steps compute nothing. This call ends
    /// that: it undoes the bad step and those after it, `back` in number, as Solver::call_off()
    /// does, and training goes on. Throws Error(invalid_argument) without guard_loss, and for
    /// another number.
    void call_off(int back);
    void set_learning_rate(double rate);
    double learning_rate() const;
    std::uint64_t steps() const;  ///< updates so far
    /// As Solver::use_averages().
    void use_averages();

    /// As for a Solver, and with its files, which hold no trace of the placement: training goes on
    /// from them on one device, or on others.
    void save_checkpoint(const std::string& path, const std::map<std::string, double>& extra = {});
    std::map<std::string, double> load_checkpoint(const std::string& path);

  private:
    friend class internal::Access;
    PlacedSolverImpl& impl() const { return *impl_; }
    std::unique_ptr<PlacedSolverImpl> impl_;
};

}  // namespace dlprim
