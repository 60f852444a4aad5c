// SPDX-License-Identifier: MIT
// The value of a Scalar as another type, rounded once.
#pragma once

#include <dlprim/scalar.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace dlprim {

/// The integer nearest to zero from `value`, at most the limits of 64 bits. NaN becomes 0.
inline std::int64_t whole_of(double value) {
    if (std::isnan(value)) return 0;
    if (value >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
    if (value <= -0x1p63) return std::numeric_limits<std::int64_t>::min();
    return static_cast<std::int64_t>(value);
}

/// The scalar as float, double or a 64-bit integer.
template <typename T>
T value_of(const Scalar& scalar) {
    if (const auto* whole = std::get_if<std::int64_t>(&scalar)) return static_cast<T>(*whole);
    const double real = std::get<double>(scalar);
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(whole_of(real));
    else
        return static_cast<T>(real);
}

}  // namespace dlprim
