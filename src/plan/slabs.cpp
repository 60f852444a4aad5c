// SPDX-License-Identifier: MIT
// place_in_slabs.
#include "plan/slabs.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace dlprim {

std::vector<std::uint64_t> place_in_slabs(std::vector<Lifetime>& lifetimes, std::uint64_t alignment,
                                          std::uint64_t max_slab) {
    const auto align = [&](std::uint64_t bytes) {
        return (bytes + alignment - 1) / alignment * alignment;
    };
    std::vector<std::size_t> order(lifetimes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return lifetimes[a].bytes > lifetimes[b].bytes;
    });
    std::vector<std::uint64_t> sizes;
    std::vector<std::vector<std::size_t>> placed;  // by slab, sorted by offset
    for (const std::size_t id : order) {
        Lifetime& value = lifetimes[id];
        bool done = false;
        for (std::size_t s = 0; !done; ++s) {
            const bool fresh = s == sizes.size();
            if (fresh) {
                sizes.push_back(0);
                placed.emplace_back();
            }
            std::uint64_t offset = 0;
            for (const std::size_t other_id : placed[s]) {
                const Lifetime& other = lifetimes[other_id];
                if (other.last < value.first || value.last < other.first) continue;
                if (offset + value.bytes <= other.offset) break;
                offset = std::max(offset, align(other.offset + other.bytes));
            }
            if (!fresh && offset + value.bytes > max_slab) continue;
            value.slab = static_cast<int>(s);
            value.offset = offset;
            sizes[s] = std::max(sizes[s], align(offset + value.bytes));
            const auto at = std::lower_bound(
                placed[s].begin(), placed[s].end(), offset,
                [&](std::size_t p, std::uint64_t o) { return lifetimes[p].offset < o; });
            placed[s].insert(at, id);
            done = true;
        }
    }
    return sizes;
}

}  // namespace dlprim
