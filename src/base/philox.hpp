// SPDX-License-Identifier: MIT
// Philox4x32-10 on the host: a counter-based random number generator. Generated kernels make the
// same numbers. J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace dlprim {

/// Four 32-bit words from a 128-bit counter and a 64-bit key.
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                           std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0];
        const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter[2];
        counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0],
                   static_cast<std::uint32_t>(b),
                   static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1],
                   static_cast<std::uint32_t>(a)};
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    return counter;
}

/// Converts the upper 24 bits of a word to a float in [0, 1).
inline float uniform_from_bits(std::uint32_t word) {
    return static_cast<float>(word >> 8) * 0x1p-24f;
}

/// Two independent standard normals from two words (Box and Muller, 1958).
inline std::array<double, 2> normals_from_bits(std::uint32_t a, std::uint32_t b) {
    const double radius = std::sqrt(-2 * std::log((static_cast<double>(a) + 1) * 0x1p-32));
    const double angle = 6.283185307179586 * (static_cast<double>(b) * 0x1p-32);
    return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace dlprim
