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

}  // namespace dlprim
