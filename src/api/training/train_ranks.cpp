// SPDX-License-Identifier: MIT
// TrainRanks.
#include "api/training/train_ranks.hpp"

#include "api/net_impl.hpp"
#include "api/rank_shards.hpp"
#include "api/shard_times.hpp"
#include "api/training/initial.hpp"
#include "collective/processes/process_group.hpp"

#include <chrono>

namespace dlprim {

TrainRanks::TrainRanks(const std::vector<Context>& devices, const TrainCall& call,
                       const TrainConfig& config, ProcessGroup* group, bool is_placed,
                       const std::function<Net(const Context&, int rank)>& open)
    : call_(call),
      config_(config),
      group_(group),
      first_(group != nullptr ? group->rank() : 0),
      meets_(!is_placed && meets_in_steps(config)) {
    if (meets_)
        take_shards(devices, open);
    else
        contexts_ = devices;
}

void TrainRanks::take_shards(const std::vector<Context>& devices,
                             const std::function<Net(const Context&, int rank)>& open) {
    const std::size_t all = group_ != nullptr ? group_->size() : devices.size();
    const std::size_t first_device = first_;
    const int shards = config_.solver.shards;
    std::vector<int> own = call_.shards_of_devices;
    shards_of_ranks(all, shards, own);  // before devices are timed
    if (call_.measure_shards && all > 1) {
        const std::vector<double> seconds = seconds_of_all(devices, open);
        own = shards_by_seconds(seconds, shards);
        note_ = note_of_times(seconds, own);
    }
    const std::vector<ShardRange> parts = shards_of_ranks(all, shards, own);
    first_ = static_cast<std::size_t>(parts[first_device].first);
    for (std::size_t i = 0; i < devices.size(); ++i) {
        contexts_.push_back(devices[i]);
        for (int k = 1; k < parts[first_device + i].count; ++k)
            contexts_.emplace_back(devices[i].info().id);
    }
}

std::vector<double> TrainRanks::seconds_of_all(
    const std::vector<Context>& devices,
    const std::function<Net(const Context&, int rank)>& open) const {
    const auto warm = [this] {
        if (group_ != nullptr) group_->barrier("the devices to be timed");
    };
    const std::vector<double> own = time_shards(
        devices, open, config_.solver, std::chrono::duration<double>(call_.deadline_seconds), warm);
    return group_ == nullptr ? own : group_->gather(own, "how fast the devices are");
}

std::vector<int> TrainRanks::given_shards() const {
    return meets_ ? std::vector<int>{} : call_.shards_of_devices;
}

TeamOptions TrainRanks::team_options() const {
    TeamOptions options;
    options.shards = given_shards();
    options.measure_shards = call_.measure_shards && !meets_;
    options.deadline_seconds = call_.deadline_seconds;
    options.sharded_states = config_.sharded_states;
    options.any_order = config_.any_order;
    options.shared_devices = call_.shared_devices;
    options.processes = call_.processes;
    return options;
}

MemoryMap TrainRanks::memory_of_first(const Net& net) const {
    SolverOptions own = config_.solver;
    const std::size_t ranks = meets_              ? static_cast<std::size_t>(own.shards)
                              : group_ != nullptr ? group_->size()
                                                  : contexts_.size();
    if (config_.sharded_states) {
        own.state_parts = static_cast<int>(ranks);
        own.state_part = static_cast<int>(first_);
    }
    return Access::impl(net).plan_memory(
        own, shards_of_ranks(ranks, config_.solver.shards, given_shards()), first_);
}

}  // namespace dlprim
