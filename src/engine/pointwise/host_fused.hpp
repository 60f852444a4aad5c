// SPDX-License-Identifier: MIT
// Fused multiply-adds on the host: a * b + c, rounded once, on processors with and without the
// instruction.
#pragma once

#include <bit>
#include <cstdint>

namespace dlprim::pointwise {

/// y[j] = a[j] * b[j] + c[j] for j < n, each rounded once, as std::fma does. `y` may be one of the
/// operands.
void fused_line(const float* a, const float* b, const float* c, float* y, std::int64_t n);
void fused_line(const double* a, const double* b, const double* c, double* y, std::int64_t n);

/// std::fma(a, b, c) without the instruction and without branches.
///
/// Rounding to odd (Boldo and Melquiond, 2008): the product of two floats is exact in double. A sum
/// that is not exact in double is rounded to whichever of its two neighbours has an odd last bit,
/// and never lies halfway between two floats then, so that rounding it to float rounds as rounding
/// the exact sum would. The error of the double sum is exact (Knuth's TwoSum) and tells which
/// neighbour is on the other side.
inline float fused_in_double(float a, float b, float c) {
    const double product = static_cast<double>(a) * static_cast<double>(b);
    const double sum = product + static_cast<double>(c);
    const double other = sum - product;
    const double error = (product - (sum - other)) + (static_cast<double>(c) - other);
    const auto bits = std::bit_cast<std::uint64_t>(sum);
    // An infinite or NaN sum has an error that is NaN, and stays.
    const std::uint64_t inexact = error < 0 || error > 0 ? 1 : 0;
    const std::uint64_t even = inexact & ~bits;
    const std::uint64_t inwards = even & (std::bit_cast<std::uint64_t>(error) ^ bits) >> 63;
    const std::uint64_t odd = bits + even - 2 * inwards;
    return static_cast<float>(std::bit_cast<double>(odd));
}

}  // namespace dlprim::pointwise
