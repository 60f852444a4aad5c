// SPDX-License-Identifier: MIT
// StageLoads: what one stage of the exchange moves, adds and waits for, for each byte of a part. By
// the plan of levels (collective/processes/level_plan.hpp).
#pragma once

#include "base/shard_tree.hpp"

#include <dlprim/scale.hpp>

#include <cstddef>
#include <vector>

namespace dlprim {

/// Of the device with the most, for a part of one byte.
struct StageLoads {
    ClusterLevel::Way way = ClusterLevel::Way::transport;
    std::size_t level = 0;               ///< the outermost that its messages cross
    double held = 0;                     ///< of each sum before the stage
    double sums_out = 0, sums_in = 0;    ///< to and from other devices
    double means_out = 0, means_in = 0;  ///< when means go back
    double kept = 0;                     ///< of each sum after the stage
    double additions = 0;                ///< bytes of the results
    /// Seconds on the links, by level, and those of the means.
    std::vector<double> sums_on, means_on;
};

/// By stage. `parts` are the shards of each device, which fill the innermost members first.
std::vector<StageLoads> loads_of_stages(const Cluster& cluster, int shards,
                                        const std::vector<ShardRange>& parts, bool direct);

}  // namespace dlprim
