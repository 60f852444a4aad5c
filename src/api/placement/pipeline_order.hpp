// SPDX-License-Identifier: MIT
// pipeline_order: in which order devices compute the shards of a batch, so that the parts of a
// network work at once. The schedule is 1F1B with a flush (Narayanan et al., "Efficient Large-Scale
// Language Model Training on GPU Clusters Using Megatron-LM", 2021): a part runs forward for as
// many shards as can be in flight, then backward and forward by turns, then what is left of
// backward. A value on its way to another device counts as a stage of the pipeline, so that devices
// compute meanwhile.
//
//     2 parts, 4 shards (F forward, B backward; a B takes as long as two F):
//     part 0   F0 F1 F2 . B0 B0 F3 B1 B1 . B2 B2 . B3 B3
//     part 1   .  F0 B0 B0 F1 B1 B1 F2 B2 B2 F3 B3 B3
#pragma once

#include <cstddef>
#include <vector>

namespace dlprim {

struct PipelineTask {
    int part = 0, shard = 0;
    bool backward = false;
    bool operator==(const PipelineTask&) const = default;
};

/// How many shards a part has at most whose forward part has run and whose backward part has not.
int shards_in_flight(int part, int parts, int shards);

/// The tasks of each device, in their order. Part i runs on device device_of[i], and values flow
/// from each part to the next. A device that runs its tasks in this order, each as soon as it can,
/// waits for others only a finite time, also if it has several parts.
std::vector<std::vector<PipelineTask>> pipeline_order(const std::vector<std::size_t>& device_of,
                                                      int shards);

}  // namespace dlprim
