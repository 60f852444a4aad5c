// SPDX-License-Identifier: MIT
// For code that is written once for all types of numbers that C++ has: floats of 32 and 64 bits,
// and integers.
#pragma once

#include <dlprim/dtype.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace dlprim {

/// The result of work(T{}) with the type of such numbers, or of others() for other types: bool, and
/// floats and integers of fewer bits.
template <typename Work, typename Others>
auto with_number_type(DType dtype, Work&& work, Others&& others) -> decltype(work(float{})) {
    switch (dtype) {
        case DType::f32:
            return work(float{});
        case DType::f64:
            return work(double{});
        case DType::i8:
            return work(std::int8_t{});
        case DType::u8:
            return work(std::uint8_t{});
        case DType::i16:
            return work(std::int16_t{});
        case DType::u16:
            return work(std::uint16_t{});
        case DType::i32:
            return work(std::int32_t{});
        case DType::u32:
            return work(std::uint32_t{});
        case DType::i64:
            return work(std::int64_t{});
        case DType::u64:
            return work(std::uint64_t{});
        default:
            return others();
    }
}

/// Whether it is a NaN, which integers are not.
template <typename T>
bool is_nan(T value) {
    if constexpr (std::is_floating_point_v<T>)
        return std::isnan(value);
    else
        return false;
}

/// A float as an integer: the nearest limit where it is beyond, and 0 for a NaN. Other numbers are
/// cast.
template <typename To, typename From>
To saturated(From value) {
    if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
        if (std::isnan(value)) return 0;
        // The limits may round up when converted to the float's type; >= and <= then still keep the
        // cast defined.
        if (value <= static_cast<From>(std::numeric_limits<To>::min()))
            return std::numeric_limits<To>::min();
        if (value >= static_cast<From>(std::numeric_limits<To>::max()))
            return std::numeric_limits<To>::max();
    }
    return static_cast<To>(value);
}

}  // namespace dlprim
