// SPDX-License-Identifier: MIT
// Offsets in slabs for temporary values. Values whose lifetimes overlap do not share bytes.
//
// Greedy by size (Pisarchyk and Lee, "Efficient memory management for deep neural net inference",
// 2020): the largest value is placed first, and each value gets the lowest offset that is free
// during its whole lifetime.
#pragma once

#include <cstdint>
#include <vector>

namespace dlprim {

struct Lifetime {
    std::uint64_t bytes = 0;
    int first = 0, last = 0;  ///< positions in the schedule, both included
    // Results.
    int slab = 0;
    std::uint64_t offset = 0;
};

/// Assigns a slab and an offset to each value. Slabs have at most `max_slab` bytes, but a value
/// larger than that gets a slab of its own; the caller has refused such values before. Returns the
/// sizes of the slabs.
std::vector<std::uint64_t> place_in_slabs(std::vector<Lifetime>& lifetimes, std::uint64_t alignment,
                                          std::uint64_t max_slab);

}  // namespace dlprim
