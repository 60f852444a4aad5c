// SPDX-License-Identifier: MIT
// Team: trains one network on several devices of this host, each with a context of its own. The
// shards of a batch (SolverOptions::shards) are spread over the devices, and what is summed over
// them is added in the order that their index gives. So devices of a kind train the same bits,
// however many they are. docs/engines/shards.md describes the method.
//
// Ownership: a Team owns a Net and a Solver for each device, its ranks. They hold the same
// parameters, and the same solver state or a part of it each (TeamOptions::sharded_states).
//
// Threads: one thread at a time calls a Team. Each rank has a thread of its own for the team's
// work. While no call runs, the calling thread may use nets and solvers as dlprim/net.hpp says.
//
// Waiting: step() returns when every device has the sums of the batch, and the updates are
// enqueued.
//
// Errors: what goes wrong on a device ends the call with an Error whose what() begins with the
// device's name, also if it does not answer within TeamOptions::deadline_seconds. The team cannot
// be used any more then, and a thread that never answers is left behind with what it uses.
//
// Processes: with TeamOptions::processes the team is one of all of them. Each has some of its
// devices, whose ranks this header counts from 0, and calls the same functions in the same order.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/internal.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/net.hpp>
#include <dlprim/processes.hpp>
#include <dlprim/solver.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

struct TeamOptions {
    /// How many shards each device (of all processes) computes; their sum is SolverOptions::shards.
    /// Empty: as evenly as possible, the first devices one more.
    std::vector<int> shards;
    /// How long devices wait for each other at most. It must be longer than a device takes for its
    /// shards.
    double deadline_seconds = 600;
    /// Gradients leave a device in ranges of about so many bytes, each as soon as the backward part
    /// has completed it. The last ones of a step, beside which there is little left to compute,
    /// have down to an eighth.
    std::uint64_t range_bytes = 32 << 20;
    /// Whether each device keeps a part of the solver's state (moments, averages) and updates that
    /// part of the parameters, which then travel to the others. It takes less memory, has the same
    /// bits, and its checkpoints are those of any team. Only whole teams save and load them then:
    /// of several processes all call Solver::save_checkpoint(), by which the first one writes the
    /// file, and load_checkpoint(), and likewise use_averages().
    bool sharded_states = false;
    /// Whether the transport of several processes may add up sums over shards in an order of its
    /// own, by MPI_Allreduce or Gloo's allreduce. Bits then depend on the number of processes and
    /// on the transport, and a checkpoint says so; the default is one order for any number.
    /// Without several processes it changes nothing.
    bool any_order = false;
    /// In place of `shards`: the constructor times forward and backward of a shard on all devices
    /// at once, and gives each so many shards that the last one ends as early as it can, at least
    /// one. Nothing that is trained changes by it. Team::notes() tells the times and the numbers,
    /// which may be others the next time: with devices of several kinds, give them as `shards` to
    /// train the same bits again.
    bool measure_shards = false;
    /// Whether several ranks may have the same device, whose time and memory they then share, as a
    /// note says. Where they may not, the constructor throws Error(invalid_argument) in all
    /// processes.
    bool shared_devices = true;
    /// The processes that train together. Their networks, solvers and shards must be the same, and
    /// so must be their engines where devices are of one kind, or the constructor throws
    /// Error(invalid_argument) on all of them.
    Processes processes;
};

class TeamImpl;

class Team {
  public:
    /// `open` makes the net of a device, in training mode, whose batch is a shard's; it is called
    /// by the ranks' threads, for all at once. All ranks then have the first one's parameters.
    /// Throws Error(invalid_argument) for no device, for one context given twice, for more devices
    /// than shards, and for TeamOptions::shards that do not fit; Error(device) where data do not
    /// travel between two devices; and what Solver's constructor throws.
    Team(const std::vector<Context>& devices,
         const std::function<Net(const Context&, int rank)>& open, const SolverOptions& solver,
         const TeamOptions& options = {});
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int size() const;
    Net& net(int rank);
    Solver& solver(int rank);
    /// The first of the rank's shards, and their number.
    int first_shard(int rank) const;
    int shards(int rank) const;
    /// The seconds that a shard has taken each device (of all processes), if
    /// TeamOptions::measure_shards had them measured; else empty.
    std::vector<double> shard_seconds() const;

    /// Gives solver state and parameters of rank 0 to all, as after Solver::load_checkpoint() or
    /// Net::load_weights() on it.
    void share_state();

    /// Computes a batch: calls `feed(rank, shard)` for every shard, by the thread of its rank,
    /// which sets the inputs of net(rank) to that shard, and then makes the step of the shard.
    /// `done(rank, shard)`, if given, is called after that, and may enqueue reads of its outputs.
    void step(const std::function<void(int rank, int shard)>& feed,
              const std::function<void(int rank, int shard)>& done = {});
    /// Calls `work(rank)` by the threads of all ranks at once, and waits for them.
    void for_each(const std::function<void(int rank)>& work);
    /// Solver::set_learning_rate() and Solver::call_off() of every rank.
    void set_learning_rate(double rate);
    void call_off(int back);

    /// Sentences on how the team works: by what way data travel, and devices of several kinds.
    std::vector<std::string> notes() const;

  private:
    std::shared_ptr<TeamImpl> impl_;
};

/// Opens devices by a text: names as Context(name) takes them, or "gpus" for all GPUs, separated by
/// commas. Each gets a context of its own. Throws what Context's constructor throws.
std::vector<Context> open_devices(std::string_view names);
/// Opens the device of a process: of several names, or several GPUs where none is named, the one at
/// its place among the processes of its host. They are counted through again where there are fewer.
Context open_device(std::string_view names, const Processes& processes);

}  // namespace dlprim
