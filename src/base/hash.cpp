// SPDX-License-Identifier: MIT
// FNV-1a with a finishing mix.
#include "base/hash.hpp"

namespace dlprim {
namespace {

std::uint64_t mix(std::uint64_t x) noexcept {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ULL;
    x ^= x >> 33;
    return x;
}

}  // namespace

std::uint64_t hash64(std::string_view bytes, std::uint64_t seed) noexcept {
    std::uint64_t state = 0xcbf29ce484222325ULL ^ mix(seed);
    for (char c : bytes) {
        state ^= static_cast<unsigned char>(c);
        state *= 0x100000001b3ULL;
    }
    return mix(state ^ bytes.size());
}

std::string hash_hex(std::string_view bytes) {
    static const char digits[] = "0123456789abcdef";
    std::string text;
    for (std::uint64_t part : {hash64(bytes, 1), hash64(bytes, 0x9e3779b97f4a7c15ULL)})
        for (int shift = 60; shift >= 0; shift -= 4) text += digits[(part >> shift) & 15u];
    return text;
}

}  // namespace dlprim
