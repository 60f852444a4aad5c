// SPDX-License-Identifier: MIT
// Fused multiply-adds on the host: a * b + c with one rounding, on processors with and without the
// instruction.
#pragma once

#include <bit>
#include <cstdint>

namespace dlprim::pointwise {

/// y[j] = a[j] * b[j] + c[j] for j < n, each rounded once, as by std::fma. `y` may be one of the
/// operands.
void fused_line(const float* a, const float* b, const float* c, float* y, std::int64_t n);
void fused_line(const double* a, const double* b, const double* c, double* y, std::int64_t n);

/// std::fma(a, b, c) without the instruction and without branches.
///
/// Rounding to odd (Boldo and Melquiond, 2008): the product of two floats is exact in double. If
/// the sum is not exact in double, it is rounded to the neighbour whose last bit is odd. Such a
/// number is never halfway between two floats, so rounding it to float gives the same result as
/// rounding the exact sum. The error of the double sum is computed exactly (Knuth's TwoSum) and
/// tells on which side the other neighbour is.
inline float fused_in_double(float a, float b, float c) {
    const double product = static_cast<double>(a) * static_cast<double>(b);
    const double sum = product + static_cast<double>(c);
    const double other = sum - product;
    const double error = (product - (sum - other)) + (static_cast<double>(c) - other);
    const auto bits = std::bit_cast<std::uint64_t>(sum);
    // If the sum is infinite or NaN, its error is NaN, and the sum stays unchanged.
    const std::uint64_t inexact = error < 0 || error > 0 ? 1 : 0;
    const std::uint64_t even = inexact & ~bits;
    const std::uint64_t inwards = even & (std::bit_cast<std::uint64_t>(error) ^ bits) >> 63;
    const std::uint64_t odd = bits + even - 2 * inwards;
    return static_cast<float>(std::bit_cast<double>(odd));
}

}  // namespace dlprim::pointwise
