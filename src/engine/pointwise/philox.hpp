// SPDX-License-Identifier: MIT
// Philox4x32-10 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) for
// uniform() of the pointwise language. The key is (seed low, seed high) and the counter (element
// low, element high, step, id). The first word of the result gives 24 bits of a number in [0, 1).
#pragma once

#include "base/philox.hpp"

#include <array>
#include <cstdint>

namespace dlprim::pointwise {

inline std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                               std::uint32_t key0, std::uint32_t key1) {
    return philox(counter, {key0, key1});
}

inline float uniform(std::uint64_t seed, std::uint64_t step, std::uint64_t id,
                     std::uint64_t element) {
    const auto words =
        philox4x32({static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(element >> 32),
                    static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(id)},
                   static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
    return static_cast<float>(words[0] >> 8) * (1.0f / 16777216.0f);
}

}  // namespace dlprim::pointwise
