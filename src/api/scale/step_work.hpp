// SPDX-License-Identifier: MIT
// StepWork: what a device does in a training step, by the plan of one shard: seconds, and bytes
// that it adds up with others.
#pragma once

#include <dlprim/scale.hpp>

#include <string>
#include <vector>

namespace dlprim {

struct StepWork {
    double forward = 0, backward = 0, update = 0;  ///< seconds of a shard, and of the update
    /// Of the memory that sums are added in, bytes per second; 0: additions take no time.
    double memory = 0;
    struct Part {
        double bytes = 0;
        double ready = 0;  ///< seconds since backward began
    };
    /// Losses and statistics, and then ranges of the gradients, in the order in which they leave.
    std::vector<Part> parts;
    std::string source;  ///< where the seconds come from

    double bytes() const;
};

StepWork work_of_step(Net& net, const Cluster& cluster, const ScaleOptions& options, int shards);

}  // namespace dlprim
