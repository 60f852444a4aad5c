// SPDX-License-Identifier: MIT
// TrainRanks: the ranks of a training run's team: on which devices they are, which shards of a
// batch they compute, and what the first of them takes of its device's memory.
#pragma once

#include "train/config.hpp"

#include <dlprim/memory_map.hpp>
#include <dlprim/net.hpp>
#include <dlprim/team.hpp>
#include <dlprim/trainer.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace dlprim {

class ProcessGroup;

class TrainRanks {
  public:
    /// `devices` are those of this process, and `group` is null where it is alone. A network that
    /// is placed has one rank, whose shards do not meet. `open` opens the net that is trained; it
    /// is called where shards are to be timed before there is a team. Call and configuration are
    /// referred to. Processes make one together.
    TrainRanks(const std::vector<Context>& devices, const TrainCall& call,
               const TrainConfig& config, ProcessGroup* group, bool is_placed,
               const std::function<Net(const Context&, int rank)>& open);

    /// Of this process's ranks: each device once, or as often as it has shards where these meet in
    /// the middle of a step and so are computed at once.
    const std::vector<Context>& contexts() const { return contexts_; }
    /// The number of the first of them among those of all processes.
    std::size_t first() const { return first_; }
    /// How long shards took, if they were timed; else empty. A team that measures them tells
    /// itself.
    const std::string& note() const { return note_; }

    TeamOptions team_options() const;
    /// What a step of the first rank takes, of which `net` was opened.
    MemoryMap memory_of_first(const Net& net) const;

  private:
    void take_shards(const std::vector<Context>& devices,
                     const std::function<Net(const Context&, int rank)>& open);
    /// How long a shard takes each device, of all processes.
    std::vector<double> seconds_of_all(
        const std::vector<Context>& devices,
        const std::function<Net(const Context&, int rank)>& open) const;
    /// As the call gives them, which is by rank unless each rank has one shard.
    std::vector<int> given_shards() const;

    const TrainCall& call_;
    const TrainConfig& config_;
    ProcessGroup* group_;
    std::vector<Context> contexts_;
    std::size_t first_;
    bool meets_;  ///< whether shards meet in the middle of a step
    std::string note_;
};

}  // namespace dlprim
