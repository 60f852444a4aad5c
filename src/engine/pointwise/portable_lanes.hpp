// SPDX-License-Identifier: MIT
// Highway's operations on a vector of one lane, in plain C++, for builds without Highway and
// processors without AVX2. The compiler makes vectors of loops over them. A multiply-add is rounded
// twice, so bits differ from those of processors that have the instruction.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace dlprim::pointwise::portable_lanes {

struct FloatLane {};
struct IntLane {};

template <class V>
using DFromV = FloatLane;
template <class D>
using RebindToSigned = IntLane;

constexpr std::size_t Lanes(FloatLane) {
    return 1;
}
constexpr std::size_t MaxLanes(FloatLane) {
    return 1;
}
inline float LoadU(FloatLane, const float* from) {
    return *from;
}
inline void StoreU(float v, FloatLane, float* to) {
    *to = v;
}
inline float Set(FloatLane, float v) {
    return v;
}
inline std::int32_t Set(IntLane, std::int32_t v) {
    return v;
}
inline float Zero(FloatLane) {
    return 0;
}

inline float Add(float a, float b) {
    return a + b;
}
// Integers wrap around, as in vectors.
inline std::int32_t Add(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
inline float Sub(float a, float b) {
    return a - b;
}
inline std::int32_t Sub(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}
inline float Mul(float a, float b) {
    return a * b;
}
inline float Div(float a, float b) {
    return a / b;
}
inline float MulAdd(float a, float b, float c) {
    return a * b + c;
}
inline float NegMulAdd(float a, float b, float c) {
    return c - a * b;
}
inline float Sqrt(float a) {
    return std::sqrt(a);
}
inline float Neg(float a) {
    return -a;
}
inline float Abs(float a) {
    return std::fabs(a);
}
inline float CopySign(float magnitude, float sign) {
    return std::copysign(magnitude, sign);
}
// Of equal operands and NaN the second is returned, as by the instructions of x86.
inline float Min(float a, float b) {
    return a < b ? a : b;
}
inline float Max(float a, float b) {
    return a > b ? a : b;
}
// To the nearest whole number, of two the even one: adding 2^23 leaves no digits for a fraction.
inline float Round(float a) {
    const float large = std::copysign(8388608.0f, a);
    const float whole = std::copysign((a + large) - large, a);
    return std::fabs(a) < 8388608.0f ? whole : a;
}

inline bool Eq(float a, float b) {
    return a == b;
}
inline bool IsNaN(float a) {
    return a != a;
}
inline bool Lt(float a, float b) {
    return a < b;
}
inline bool Le(float a, float b) {
    return a <= b;
}
inline bool Not(bool a) {
    return !a;
}
inline bool And(bool a, bool b) {
    return a && b;
}
inline bool Or(bool a, bool b) {
    return a || b;
}
inline float IfThenElse(bool which, float a, float b) {
    return which ? a : b;
}
inline float IfThenElseZero(bool which, float a) {
    return which ? a : 0.0f;
}

inline std::int32_t ConvertTo(IntLane, float a) {
    return static_cast<std::int32_t>(a);
}
inline float ConvertTo(FloatLane, std::int32_t a) {
    return static_cast<float>(a);
}
inline std::int32_t BitCast(IntLane, float a) {
    return std::bit_cast<std::int32_t>(a);
}
inline float BitCast(FloatLane, std::int32_t a) {
    return std::bit_cast<float>(a);
}
template <int bits>
std::int32_t ShiftLeft(std::int32_t a) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) << bits);
}
template <int bits>
std::int32_t ShiftRight(std::int32_t a) {
    return a >> bits;
}

}  // namespace dlprim::pointwise::portable_lanes
