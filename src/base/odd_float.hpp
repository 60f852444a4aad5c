// SPDX-License-Identifier: MIT
// Rounding to odd: for values that are rounded once more, to a shorter type. A value that a float
// does not hold becomes the one of its two neighbours whose last bit is 1. That bit then says "not
// exact", so that the second rounding gives what one rounding of the value itself would give, where
// rounding to the nearest twice may bring a value to a tie and then to the wrong side.
// S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums", 2008.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace dlprim {

/// The value as a double, exact for all types but 64-bit integers, of which those beyond 2^53 are
/// rounded to odd.
template <typename T>
double odd_double(T value) {
    if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
        constexpr T exact = T{1} << 53, lost = 0x7ff;
        bool large = value > exact;
        if constexpr (std::is_signed_v<T>) large = large || value < -exact;
        if (large && (value & lost) != 0) value = static_cast<T>((value & ~lost) | (lost + 1));
    }
    return static_cast<double>(value);
}

/// The value as a float, rounded to odd. For rounding to a type with at most 22 bits of mantissa.
template <typename T>
float odd_float(T value) {
    if constexpr (std::is_same_v<T, float>) {
        return value;
    } else {
        const double wide = odd_double(value);
        const auto near = static_cast<float>(wide);
        if (std::isnan(wide) || static_cast<double>(near) == wide) return near;
        const auto bits = std::bit_cast<std::uint32_t>(near);
        if ((bits & 1u) != 0) return near;
        return std::bit_cast<float>(
            std::abs(wide) > std::abs(static_cast<double>(near)) ? bits + 1 : bits - 1);
    }
}

}  // namespace dlprim
