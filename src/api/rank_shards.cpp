// SPDX-License-Identifier: MIT
// shards_of_ranks.
#include "api/rank_shards.hpp"

#include "base/text.hpp"

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
    int first = 0;
    for (int i = 0; i < count; ++i) {
        const int even = shards / count + (i < shards % count ? 1 : 0);
        const int own = given.empty() ? even : given[static_cast<std::size_t>(i)];
        require(own >= 1, "device ", i, " is given ", own, " shards: each computes at least one");
        parts.push_back({first, own});
        first += own;
    }
    require(first == shards, "the devices are given ", first, " shards in all, a batch has ",
            shards);
    return parts;
}

}  // namespace dlprim
