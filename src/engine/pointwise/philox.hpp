// SPDX-License-Identifier: MIT
// Philox4x32-10 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) for
// uniform(), normal() and random() of the pointwise language. The key is the seed. The counter is
// (element low, element high, step low, id low); the high halves of step and id, which programs
// rarely have, are mixed into the element's high half. Generated kernels make the same numbers
// (emit_random.cpp).
#pragma once

#include "base/philox.hpp"

#include <array>
#include <cstdint>

namespace dlprim::pointwise {

inline std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                               std::uint32_t key0, std::uint32_t key1) {
    return philox(counter, {key0, key1});
}

struct RandomKey {
    std::uint64_t seed, step, id;
};

inline std::array<std::uint32_t, 4> random_words(const RandomKey& key, std::uint64_t element) {
    const auto id_high = static_cast<std::uint32_t>(key.id >> 32);
    const std::uint32_t high = static_cast<std::uint32_t>(element >> 32) ^
                               static_cast<std::uint32_t>(key.step >> 32) ^
                               (id_high << 16 | id_high >> 16);
    return philox4x32({static_cast<std::uint32_t>(element), high,
                       static_cast<std::uint32_t>(key.step), static_cast<std::uint32_t>(key.id)},
                      static_cast<std::uint32_t>(key.seed),
                      static_cast<std::uint32_t>(key.seed >> 32));
}

/// 24 bits of the first word, in [0, 1).
inline float uniform(const RandomKey& key, std::uint64_t element) {
    return uniform_from_bits(random_words(key, element)[0]);
}

// Coefficients of normal(), which has only sums, products and conversions, so that every device
// gets the same bits: log as in the Cephes library, sine and cosine as there.
inline constexpr std::array<float, 9> normal_log{
    7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,  -1.2420140846e-1f, 1.4249322787e-1f,
    -1.6668057665e-1f, 2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
inline constexpr std::array<float, 3> normal_sine{-1.9515295891e-4f, 8.3321608736e-3f,
                                                  -1.6666654611e-1f};
inline constexpr std::array<float, 3> normal_cosine{2.443315711809948e-5f, -1.388731625493765e-3f,
                                                    4.166664568298827e-2f};

/// A standard normal number from two words (G. Box and M. Muller, 1958).
float normal_of(std::uint32_t a, std::uint32_t b);

inline float normal(const RandomKey& key, std::uint64_t element) {
    const auto words = random_words(key, element);
    return normal_of(words[0], words[1]);
}

}  // namespace dlprim::pointwise
