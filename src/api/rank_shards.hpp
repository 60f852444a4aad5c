// SPDX-License-Identifier: MIT
// Which shards of a batch each rank of a team computes.
#pragma once

#include "base/shard_tree.hpp"

#include <cstddef>
#include <vector>

namespace dlprim {

/// `given` as TeamOptions::shards. Throws Error(invalid_argument) where the numbers do not fit.
std::vector<ShardRange> shards_of_ranks(std::size_t devices, int shards,
                                        const std::vector<int>& given);

/// How many shards of a batch each device computes, where device i takes seconds[i] for one: the
/// numbers by which the last device ends as early as it can, at least one each. `shards` is at
/// least the number of devices.
std::vector<int> shards_by_seconds(const std::vector<double>& seconds, int shards);

}  // namespace dlprim
