// SPDX-License-Identifier: MIT
// Integer arithmetic for sizes and grids.
#pragma once

#include <cstdint>

namespace dlprim {

/// a / b, rounded up, for a >= 0 and b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

/// The largest power of two that is at most n; 1 for n < 2.
constexpr std::int64_t power_below(std::int64_t n) {
    std::int64_t p = 1;
    while (p * 2 <= n) p *= 2;
    return p;
}

/// The least power of two that is at least n; 1 for n < 2.
constexpr std::int64_t power_above(std::int64_t n) {
    std::int64_t p = 1;
    while (p < n) p *= 2;
    return p;
}

}  // namespace dlprim
