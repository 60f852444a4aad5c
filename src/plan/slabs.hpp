// SPDX-License-Identifier: MIT
// Offsets in slabs for values that live for a while: values whose lives overlap do not share bytes.
//
// Greedy by size (Pisarchyk and Lee, "Efficient memory management for deep neural net inference",
// 2020): the largest first, each at the lowest offset that is free for its whole life.
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

/// Assigns slab and offset to each; no slab exceeds `max_slab` bytes. Returns the slabs' sizes. A
/// value larger than `max_slab` gets a slab of its own (the caller has refused it before).
std::vector<std::uint64_t> place_in_slabs(std::vector<Lifetime>& lifetimes, std::uint64_t alignment,
                                          std::uint64_t max_slab);

}  // namespace dlprim
