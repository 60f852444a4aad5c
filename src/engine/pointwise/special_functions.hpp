// SPDX-License-Identifier: MIT
// Functions of the pointwise language that C++ lacks, in double on the host, and quotients of
// integers. Kernels compute them in the same way (emit_special.cpp).
#pragma once

#include <array>
#include <cstdint>

namespace dlprim::pointwise {

/// The logarithm of |gamma(x)|, for any threads at once.
double log_gamma(double x);
/// The derivative of log_gamma: by reflection below 0, recurrence up to 10 and the asymptotic
/// series of Bernoulli numbers there. NaN at negative integers, infinite at 0.
double digamma(double x);
/// The derivative of digamma.
double trigamma(double x);
/// The number whose erf is x: M. Giles, "Approximating the erfinv function", GPU Computing Gems
/// (2011), and two steps of Newton's method. Infinite at 1 and -1, NaN beyond.
double erf_inverse(double x);

/// a - b * floor(a / b), with the sign of b, as Python's % and PyTorch's remainder.
double floor_remainder(double a, double b);
/// floor(a / b) without the rounding error of the quotient, as PyTorch's floor_divide.
double floor_quotient(double a, double b);

/// The quotient of integers, rounded towards zero. 0 if b is 0, and what fits into 64 bits of the
/// one quotient that does not.
inline std::int64_t quotient(std::int64_t a, std::int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a));
    return a / b;
}
inline std::uint64_t quotient(std::uint64_t a, std::uint64_t b) {
    return b == 0 ? 0 : a / b;
}
/// What it leaves of a: with the sign of a, and 0 if b is 0.
template <typename T>
T rest_of(T a, T b) {
    if (b == 0) return T(0);
    // In unsigned arithmetic, since the product of the quotient that does not fit overflows.
    return static_cast<T>(static_cast<std::uint64_t>(a) -
                          static_cast<std::uint64_t>(quotient(a, b)) *
                              static_cast<std::uint64_t>(b));
}
/// The same rounded down: the rest has the sign of b.
template <typename T>
T floor_rest(T a, T b) {
    const T rest = rest_of(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
}
template <typename T>
T floor_quotient_of(T a, T b) {
    const T rest = rest_of(a, b);
    return static_cast<T>(quotient(a, b) - (rest != 0 && (rest < 0) != (b < 0) ? 1 : 0));
}

/// Coefficients, highest power first. Of digamma's series in 1 / x^2:
inline constexpr std::array<double, 7> digamma_series{
    1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12};
/// Of trigamma's series in 1 / x^2, the Bernoulli numbers:
inline constexpr std::array<double, 5> trigamma_series{5.0 / 66, -1.0 / 30, 1.0 / 42, -1.0 / 30,
                                                       1.0 / 6};
/// Of erf_inverse in w - 2.5, where w = -log(1 - x^2) is less than 5:
inline constexpr std::array<double, 9> erfinv_centre{
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
/// Of erf_inverse in sqrt(w) - 3 beyond.
inline constexpr std::array<double, 9> erfinv_tail{-0.000200214257, 0.000100950558, 0.00134934322,
                                                   -0.00367342844,  0.00573950773,  -0.0076224613,
                                                   0.00943887047,   1.00167406,     2.83297682};

}  // namespace dlprim::pointwise
