// SPDX-License-Identifier: MIT
// Float functions without branches, so that loops over them are vectorised. The error is a few
// units in the last place.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace dlprim::pointwise {

/// False for integers, which have no NaN.
template <typename T>
bool is_nan(T value) {
    if constexpr (std::is_floating_point_v<T>)
        return std::isnan(value);
    else
        return false;
}

inline float power_of_two(std::int32_t n) {
    const std::int32_t bits = (n + 127) << 23;
    float result;
    std::memcpy(&result, &bits, 4);
    return result;
}

inline float fast_exp(float x) {
    const float low = x < -104.0f ? -104.0f : x;
    const float held = low > 89.0f ? 89.0f : low;
    const float turns = held * 1.44269504088896341f;
    const float whole = (turns + 12582912.0f) - 12582912.0f;  // rounds to the nearest integer
    // ln 2 in two parts. The first has few bits, so products with it are exact.
    const float r = (held - whole * 0.693359375f) + whole * 2.12194440054690583e-4f;
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r * r + r + 1.0f;
    const auto n = static_cast<std::int32_t>(whole);
    const std::int32_t half = n >> 1;
    return x != x ? x : p * power_of_two(half) * power_of_two(n - half);
}

inline float fast_sigmoid(float x) {
    return 1.0f / (1.0f + fast_exp(-x));
}

inline float fast_tanh(float x) {
    const float a = x < 0 ? -x : x;
    const float t = fast_exp(-2.0f * a);
    const float far = (1.0f - t) / (1.0f + t);
    const float s = x * x;
    const float near =
        a * (1.0f -
             s * (1.0f / 3.0f - s * (2.0f / 15.0f - s * (17.0f / 315.0f - s * (62.0f / 2835.0f)))));
    const float result = a < 0.3f ? near : far;
    return x < 0 ? -result : result;
}

/// A power series near zero, and Abramowitz and Stegun 7.1.26 beyond 1 (absolute error 1.5e-7).
inline float fast_erf(float x) {
    const float a = x < 0 ? -x : x;
    const float s = x * x;
    float p = -1.0f / 76204800.0f;
    p = p * s + 1.0f / 6894720.0f;
    p = p * s - 1.0f / 685440.0f;
    p = p * s + 1.0f / 75600.0f;
    p = p * s - 1.0f / 9360.0f;
    p = p * s + 1.0f / 1320.0f;
    p = p * s - 1.0f / 216.0f;
    p = p * s + 1.0f / 42.0f;
    p = p * s - 1.0f / 10.0f;
    p = p * s + 1.0f / 3.0f;
    const float near = 1.12837916709551257f * a * (1.0f - s * p);
    const float t = 1.0f / (1.0f + 0.3275911f * a);
    const float q =
        t * (0.254829592f +
             t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    const float far = 1.0f - q * fast_exp(-s);
    const float result = a < 1.0f ? near : far;
    return x < 0 ? -result : result;
}

}  // namespace dlprim::pointwise
