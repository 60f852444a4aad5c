// SPDX-License-Identifier: MIT
// shards_of_ranks, shards_by_seconds.
#include "api/rank_shards.hpp"

#include "base/text.hpp"

#include <cstdint>

namespace dlprim {

std::vector<ShardRange> shards_of_ranks(std::size_t devices, int shards,
                                        const std::vector<int>& given) {
    std::vector<ShardRange> parts;
    const auto count = static_cast<int>(devices);
    require(count > 0, "a team needs a device");
    require(shards >= count, "there are ", count, " devices and ", shards,
            shards == 1 ? " shard" : " shards",
            " of a batch: each device computes at least one, so set \"shards\" to ", count,
            " or more");
    require(given.empty() || given.size() == devices, "shards are given for ", given.size(),
            " devices, and there are ", devices);
    // Numbers that were given may be any, also such whose sum is beyond an int.
    std::int64_t all = given.empty() ? shards : 0;
    for (std::size_t i = 0; i < given.size(); ++i) {
        require(given[i] >= 1, "device ", i, " is given ", given[i],
                " shards: each computes at least one");
        all += given[i];
    }
    require(all == shards, "the devices are given ", all, " shards in all, a batch has ", shards,
            ": make the numbers add up to ", shards, ", or set \"shards\" to ", all);
    int first = 0;
    for (int i = 0; i < count; ++i) {
        const int even = shards / count + (i < shards % count ? 1 : 0);
        const int own = given.empty() ? even : given[static_cast<std::size_t>(i)];
        parts.push_back({first, own});
        first += own;
    }
    return parts;
}

std::vector<int> shards_by_seconds(const std::vector<double>& seconds, int shards) {
    std::vector<int> own(seconds.size(), 1);
    // Each further shard goes to the device that ends first with it. As shards are alike, no other
    // choice ends earlier. Of equal devices the first one takes it, as where they are even.
    for (auto left = shards - static_cast<int>(seconds.size()); left > 0; --left) {
        std::size_t best = 0;
        for (std::size_t i = 1; i < seconds.size(); ++i)
            if ((own[i] + 1) * seconds[i] < (own[best] + 1) * seconds[best]) best = i;
        ++own[best];
    }
    return own;
}

}  // namespace dlprim
