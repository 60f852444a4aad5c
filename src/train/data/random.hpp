// SPDX-License-Identifier: MIT
// Random numbers of the data: a function of the seed, the epoch, the example and what they are for,
// so that they depend neither on the number of threads nor on what ran before.
#pragma once

#include "base/philox.hpp"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace dlprim {

/// What a random number is used for. It is a word of the generator's counter.
enum class RandomUse : std::uint32_t {
    shuffling = 1,
    augmenting = 2,  ///< mirroring and shifting
    cropping = 3,
    colouring = 4,
    cutting = 5,
    mixing = 6,
    splitting = 7,
    replacing = 8,
    sampling = 9,
};

/// `attempt` gives other numbers for the same use.
inline std::array<std::uint32_t, 4> data_random(std::uint64_t seed, std::uint64_t epoch,
                                                std::int64_t index, RandomUse use,
                                                std::uint32_t attempt = 0) {
    return philox(
        {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
         static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(use) + 16 * attempt},
        {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

/// Fisher-Yates shuffle.
inline void shuffle(std::vector<std::int64_t>& order, std::uint64_t seed, std::uint64_t epoch,
                    RandomUse use) {
    for (auto i = static_cast<std::int64_t>(order.size()) - 1; i > 0; --i) {
        const auto words = data_random(seed, epoch, i, use);
        const std::uint64_t word = (std::uint64_t{words[0]} << 32) | words[1];
        std::swap(order[static_cast<std::size_t>(i)],
                  order[static_cast<std::size_t>(word % static_cast<std::uint64_t>(i + 1))]);
    }
}

}  // namespace dlprim
