// SPDX-License-Identifier: MIT
// loads_of_stages(). In a stage of c members each device holds a share of every element range of
// its member, sends c - 1 of c parts of that for each sum that waits there, and keeps one. A
// message of stage s leaves the sender's member of level s, and so those within it: it loads their
// links.
#include "api/scale/stage_loads.hpp"

#include "collective/processes/level_plan.hpp"

#include <algorithm>

namespace dlprim {

namespace {

/// Bytes of each device in a stage, for a part of one byte.
struct Moves {
    std::vector<double> out, in;
};

std::vector<LevelPlan::Groups> groups_of_levels(const Cluster& cluster, std::size_t devices,
                                                bool direct) {
    std::vector<LevelPlan::Groups> levels;
    std::size_t size = 1;
    for (const ClusterLevel& level : cluster.levels) {
        if (size >= devices) break;
        size *= static_cast<std::size_t>(level.count);
        if (direct && size < devices) continue;
        LevelPlan::Groups groups(devices);
        for (std::size_t rank = 0; rank < devices; ++rank) groups[rank] = rank / size;
        levels.push_back(std::move(groups));
    }
    return levels;
}

/// The most that a member's link carries in a direction, by level, in seconds.
std::vector<double> seconds_on_links(const Cluster& cluster, std::size_t outermost,
                                     const Moves& moves) {
    std::vector<double> seconds;
    std::size_t size = 1;
    const std::size_t all = moves.out.size();
    for (std::size_t l = 0; l <= outermost; ++l) {
        double most = 0;
        for (std::size_t first = 0; first < all; first += size) {
            double out = 0, in = 0;
            for (std::size_t rank = first; rank < std::min(first + size, all); ++rank) {
                out += moves.out[rank];
                in += moves.in[rank];
            }
            most = std::max({most, out, in});
        }
        seconds.push_back(most / (cluster.levels[l].gbytes_per_s * 1e9));
        size *= static_cast<std::size_t>(cluster.levels[l].count);
    }
    return seconds;
}

double most_of(const std::vector<double>& values) {
    return *std::max_element(values.begin(), values.end());
}

/// Of all devices with all: messages of a link leave its member only if they go to another one.
std::vector<double> direct_seconds(const Cluster& cluster, std::size_t outermost,
                                   const std::vector<double>& sums) {
    std::vector<double> seconds;
    const std::size_t all = sums.size();
    double total = 0;
    for (const double sum : sums) total += sum;
    std::size_t size = 1;
    for (std::size_t l = 0; l <= outermost; ++l) {
        double most = 0;
        for (std::size_t first = 0; first < all; first += size) {
            const std::size_t end = std::min(first + size, all);
            double own = 0;
            for (std::size_t rank = first; rank < end; ++rank) own += sums[rank];
            const auto devices = static_cast<double>(end - first);
            const double out = own * (static_cast<double>(all) - devices);
            most = std::max({most, out, (total - own) * devices});
        }
        seconds.push_back(most / static_cast<double>(all) / (cluster.levels[l].gbytes_per_s * 1e9));
        size *= static_cast<std::size_t>(cluster.levels[l].count);
    }
    return seconds;
}

class Stages {
  public:
    Stages(const Cluster& cluster, int shards, const std::vector<ShardRange>& parts, bool direct)
        : cluster_(cluster),
          direct_(direct),
          levels_(groups_of_levels(cluster, parts.size(), direct)),
          plan_(levels_, shards, parts),
          held_(parts.size(), 1.0) {}

    std::vector<StageLoads> run() {
        std::vector<StageLoads> all;
        for (std::size_t stage = 0; stage < levels_.size(); ++stage) all.push_back(loads(stage));
        return all;
    }

  private:
    std::size_t outermost(std::size_t stage) const {
        if (!direct_) return stage;
        std::size_t size = 1, level = 0;
        for (; size < held_.size(); ++level)
            size *= static_cast<std::size_t>(cluster_.levels[level].count);
        return level - 1;
    }

    /// How many members a group has: those of the stage before, devices in the first.
    std::vector<double> members(std::size_t stage) const {
        const LevelPlan::Groups& groups = levels_[stage];
        std::vector<double> counts(groups.back() + 1, 0.0);
        for (std::size_t rank = 0; rank < groups.size(); ++rank)
            if (rank == 0 || stage == 0 || levels_[stage - 1][rank] != levels_[stage - 1][rank - 1])
                ++counts[groups[rank]];
        return counts;
    }

    StageLoads loads(std::size_t stage) {
        const std::size_t devices = held_.size();
        const std::vector<double> counts = members(stage);
        Moves sums{std::vector<double>(devices), std::vector<double>(devices)};
        Moves means = sums;
        StageLoads loads;
        loads.level = outermost(stage);
        loads.way = loads.level == 0 ? cluster_.levels[0].way : ClusterLevel::Way::transport;
        std::vector<double> waiting(devices);
        for (std::size_t rank = 0; rank < devices; ++rank) {
            const double count = counts[levels_[stage][rank]], held = held_[rank];
            const double kept = held / count;
            const auto own = static_cast<double>(plan_.nodes(rank, stage).size());
            const auto all = static_cast<double>(plan_.addends(rank, stage).size());
            const auto left = static_cast<double>(plan_.nodes(rank, stage + 1).size());
            waiting[rank] = own;
            sums.out[rank] = own * (held - kept);
            sums.in[rank] = (all - own) * kept;
            means.out[rank] = (count - 1) * kept;
            means.in[rank] = held - kept;
            loads.held = std::max(loads.held, held);
            loads.kept = std::max(loads.kept, kept);
            loads.additions = std::max(loads.additions, (all - left) * kept);
            held_[rank] = kept;
        }
        loads.sums_out = most_of(sums.out);
        loads.sums_in = most_of(sums.in);
        loads.means_out = most_of(means.out);
        loads.means_in = most_of(means.in);
        loads.sums_on = direct_ ? direct_seconds(cluster_, loads.level, waiting)
                                : seconds_on_links(cluster_, loads.level, sums);
        loads.means_on =
            direct_ ? direct_seconds(cluster_, loads.level, std::vector<double>(devices, 1.0))
                    : seconds_on_links(cluster_, loads.level, means);
        return loads;
    }

    const Cluster& cluster_;
    const bool direct_;
    const std::vector<LevelPlan::Groups> levels_;
    const LevelPlan plan_;
    std::vector<double> held_;  ///< by device, of each element range
};

}  // namespace

std::vector<StageLoads> loads_of_stages(const Cluster& cluster, int shards,
                                        const std::vector<ShardRange>& parts, bool direct) {
    return Stages(cluster, shards, parts, direct).run();
}

}  // namespace dlprim
