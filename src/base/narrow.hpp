// SPDX-License-Identifier: MIT
// Elements of narrow types (is_narrow()): the numbers that their bytes stand for, and back.
#pragma once

#include <dlprim/dtype.hpp>

#include <cstdint>

namespace dlprim {

/// How a narrow float is made. Its value is 2^(exponent - bias) * 1.mantissa, or below the smallest
/// exponent 2^(1 - bias) * 0.mantissa.
struct NarrowFloat {
    int exponent_bits, mantissa_bits, bias;
    std::uint8_t largest;   ///< the code of the largest number
    std::uint8_t infinite;  ///< what a larger number becomes
    std::uint8_t nan;
    bool one_zero;  ///< zero has no sign, and NaN is one code
};
/// Of float8e4m3fn, float8e4m3fnuz, float8e5m2, float8e5m2fnuz or float4e2m1.
NarrowFloat narrow_float(DType dtype) noexcept;

bool is_narrow_integer(DType dtype) noexcept;
/// The low bits of a narrow integer, extended by its sign.
std::uint8_t low_bits(DType dtype, std::uint8_t value) noexcept;

/// Exact.
float from_narrow(DType dtype, std::uint8_t code) noexcept;
/// As convert() says.
std::uint8_t to_narrow(DType dtype, double value) noexcept;

}  // namespace dlprim
