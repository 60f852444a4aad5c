// SPDX-License-Identifier: MIT
// Functions of float on vectors of any width: exp, expm1, exp2, log, log1p, tanh, sigmoid and erf.
//
// host_vectors.cpp includes this text once for each kind of processor, in a namespace of that kind
// whose `hn` holds the operations on vectors (Highway's, or those of portable_lanes.hpp). There is
// therefore no #pragma once, and nothing else may include it.
//
// A function applies the same operations to each lane, so results have the same bits at every width
// of vectors. The polynomials were fitted to the functions in 40 digits by Lawson's iteratively
// reweighted least squares, which approaches the minimax polynomial; their coefficients were then
// rounded to float. Errors are in units in the last place, with fused multiply-adds; the test
// engine_vector_functions holds them against long double.

// The polynomial with these coefficients, highest power first, by Horner's scheme.
template <class V, std::size_t N>
HWY_INLINE V polynomial(V x, const float (&coefficients)[N]) {
    const hn::DFromV<V> d;
    V sum = hn::Set(d, coefficients[0]);
    for (std::size_t i = 1; i < N; ++i) sum = hn::MulAdd(sum, x, hn::Set(d, coefficients[i]));
    return sum;
}

// The two parts of ln 2. The first has ten bits, so its products with exponents are exact.
constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;

// (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2, with an error of 2.3e-9 r in exp(r) - 1.
constexpr float exp_tail[] = {0.000199141621f, 0.00139410293f, 0.00833327323f,
                              0.041666355f,    0.166666672f,   0.5f};

// exp(x) = 2^turns * (1 + tail).
template <class V>
struct Reduced {
    V turns, tail;
};

// Cody and Waite's reduction: x = turns * ln 2 + r.
template <class V>
HWY_INLINE Reduced<V> reduce_exp(V x) {
    const hn::DFromV<V> d;
    const V turns = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504088896341f)));
    V r = hn::NegMulAdd(turns, hn::Set(d, ln2_high), x);
    r = hn::NegMulAdd(turns, hn::Set(d, ln2_low), r);
    return {turns, hn::MulAdd(hn::Mul(r, r), polynomial(r, exp_tail), r)};
}

// 2^n for whole -126 <= n <= 127.
template <class V>
HWY_INLINE V power_of_two(V n) {
    const hn::DFromV<V> d;
    const hn::RebindToSigned<decltype(d)> di;
    const auto bits = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127)));
    return hn::BitCast(d, bits);
}

// 2^n * v for whole -252 <= n <= 254. Two factors, because 2^n alone may be no normal number.
template <class V>
HWY_INLINE V scale(V v, V n) {
    const V half = hn::Round(hn::Mul(n, hn::Set(hn::DFromV<V>(), 0.5f)));
    return hn::Mul(hn::Mul(v, power_of_two(half)), power_of_two(hn::Sub(n, half)));
}

// Min and Max return any operand if the other is NaN, so functions that clamp put NaN back.
template <class V>
HWY_INLINE V clamp(V x, float low, float high) {
    const hn::DFromV<V> d;
    return hn::Min(hn::Max(x, hn::Set(d, low)), hn::Set(d, high));
}

template <class V>
HWY_INLINE V nan_of(V x, V otherwise) {
    return hn::IfThenElse(hn::IsNaN(x), x, otherwise);
}

// Rounded down: to the nearest, and 1 less where that is above. The sign is copied for the sake of
// -0.
template <class V>
HWY_INLINE V floor_of(V x) {
    const hn::DFromV<V> d;
    const V near = hn::Round(x);
    const V less = hn::Sub(near, hn::IfThenElseZero(hn::Lt(x, near), hn::Set(d, 1.0f)));
    return hn::CopySign(less, x);
}

// Error 1 ulp.
template <class V>
HWY_INLINE V exp_of(V x) {
    const Reduced<V> e = reduce_exp(clamp(x, -104.0f, 89.0f));
    return nan_of(x, scale(hn::Add(e.tail, hn::Set(hn::DFromV<V>(), 1.0f)), e.turns));
}

// Error 1 ulp, and none at whole numbers.
template <class V>
HWY_INLINE V exp2_of(V x) {
    const hn::DFromV<V> d;
    const V held = clamp(x, -151.0f, 129.0f);
    const V turns = hn::Round(held);
    const V r = hn::Mul(hn::Sub(held, turns), hn::Set(d, 0.693147180559945309f));
    const V tail = hn::MulAdd(hn::Mul(r, r), polynomial(r, exp_tail), r);
    return nan_of(x, scale(hn::Add(tail, hn::Set(d, 1.0f)), turns));
}

// exp(x) - 1 for -104 <= x <= 89: half = 2^(turns - 1), and twice half * (1 + tail) - 1/2.
template <class V>
HWY_INLINE V expm1_within(V x) {
    const hn::DFromV<V> d;
    const Reduced<V> e = reduce_exp(x);
    const V one = hn::Set(d, 1.0f), half_of_one = hn::Set(d, 0.5f);
    const V half = power_of_two(hn::Sub(e.turns, one));
    const V result = hn::MulAdd(half, e.tail, hn::Sub(half, half_of_one));
    return hn::Add(result, result);
}

// Error 1.5 ulp. The sign is copied for the sake of -0.
template <class V>
HWY_INLINE V expm1_of(V x) {
    return nan_of(x, hn::CopySign(expm1_within(clamp(x, -25.0f, 89.0f)), x));
}

// (tanh(x) / x - 1) / x^2 in x^2 for |x| <= 0.55, with an error of 2.4e-9 in tanh(x) / x.
constexpr float tanh_near[] = {-0.00623555947f, 0.0210396759f, -0.0538427085f, 0.133324608f,
                               -0.333333105f};

// A polynomial near 0, and q / (q + 2) beyond, where q = exp(2 |x|) - 1, which is exactly 1 from 10
// on. Error 1.5 ulp.
template <class V>
HWY_INLINE V tanh_of(V x) {
    const hn::DFromV<V> d;
    const V a = clamp(hn::Abs(x), 0.0f, 20.0f);
    const V square = hn::Mul(a, a);
    const V near = hn::MulAdd(a, hn::Mul(square, polynomial(square, tanh_near)), a);
    const V q = expm1_within(hn::Add(a, a));
    const V far = hn::Div(q, hn::Add(q, hn::Set(d, 2.0f)));
    const auto is_near = hn::Lt(a, hn::Set(d, 0.55f));
    return nan_of(x, hn::CopySign(hn::IfThenElse(is_near, near, far), x));
}

// With exp(-|x|), which does not overflow, so that results near 0 keep their digits. Error 2.2
// ulp.
template <class V>
HWY_INLINE V sigmoid_of(V x) {
    const hn::DFromV<V> d;
    const V one = hn::Set(d, 1.0f);
    const V e = exp_of(hn::Neg(hn::Abs(x)));
    const V above = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
    return hn::Div(above, hn::Add(one, e));
}

// (log(1 + f) - f + f^2 / 2) / f^3 between sqrt(1/2) - 1 and sqrt(2) - 1, with a relative error of
// 3.2e-9 in the logarithm.
constexpr float log_tail[] = {0.067466408f,  -0.116756521f, 0.11888162f,
                              -0.124055892f, 0.142195523f,  -0.166679963f,
                              0.200021192f,  -0.250000089f, 0.333333135f};

// The logarithm of u * (1 + c) for a normal or subnormal u > 0 and a small c.
template <class V>
HWY_INLINE V log_within(V u, V c) {
    const hn::DFromV<V> d;
    const hn::RebindToSigned<decltype(d)> di;
    const auto is_small = hn::Lt(u, hn::Set(d, 1.17549435e-38f));
    const auto bits =
        hn::BitCast(di, hn::IfThenElse(is_small, hn::Mul(u, hn::Set(d, 8388608.0f)), u));
    // The exponent for which the mantissa is between sqrt(1/2), whose bits these are, and sqrt(2).
    const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));
    const V f =
        hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent))), hn::Set(d, 1.0f));
    const V e =
        hn::Sub(hn::ConvertTo(d, exponent), hn::IfThenElseZero(is_small, hn::Set(d, 23.0f)));
    const V square = hn::Mul(f, f);
    V rest = hn::MulAdd(e, hn::Set(d, ln2_low), c);
    rest = hn::MulAdd(hn::Mul(f, square), polynomial(f, log_tail), rest);
    rest = hn::NegMulAdd(hn::Set(d, 0.5f), square, rest);
    return hn::MulAdd(e, hn::Set(d, ln2_high), hn::Add(f, rest));
}

// What logarithms of `u` are at 0, below it, at infinity and NaN; elsewhere it is `result`.
template <class V>
HWY_INLINE V log_edges(V u, V result) {
    const hn::DFromV<V> d;
    const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
    const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
    const V zero = hn::Zero(d);
    result = hn::IfThenElse(hn::Lt(u, infinity), result, u);
    result = hn::IfThenElse(hn::Eq(u, zero), hn::Neg(infinity), result);
    return hn::IfThenElse(hn::Lt(u, zero), nan, result);
}

// Error 1 ulp.
template <class V>
HWY_INLINE V log_of(V x) {
    return log_edges(x, log_within(x, hn::Zero(hn::DFromV<V>())));
}

// log(u) + c / u, where u is 1 + x rounded and c what the rounding left. Error 1.5 ulp. The sign is
// copied for the sake of -0.
template <class V>
HWY_INLINE V log1p_of(V x) {
    const hn::DFromV<V> d;
    const V one = hn::Set(d, 1.0f);
    const V u = hn::Add(x, one);
    const V c = hn::Div(hn::Sub(x, hn::Sub(u, one)), u);
    return log_edges(u, hn::CopySign(log_within(u, c), x));
}

// erf(x) / x - 1 in x^2 for |x| <= 1, with an error of 4.3e-9.
constexpr float erf_near[] = {7.85385491e-05f, -0.000801019138f, 0.00518832728f, -0.026853811f,
                              0.112835854f,    -0.37612626f,     0.128379166f};
// -log(1 - erf(a)) / a - 1 in a - 1 for 1 <= a <= 4, with an error of 2.4e-9 in erf(a).
constexpr float erf_far[] = {1.3963011e-05f, -0.00026681961f, 0.00221395632f, -0.0122068347f,
                             0.053749036f,   0.789361775f,    0.849605501f};

// x + x * near(x^2) up to 1, and 1 - exp(-a - a * far(a - 1)) beyond, which is exactly 1 from 4 on.
// Error 1.5 ulp.
template <class V>
HWY_INLINE V erf_of(V x) {
    const hn::DFromV<V> d;
    const V one = hn::Set(d, 1.0f);
    const V a = hn::Min(hn::Abs(x), hn::Set(d, 4.0f));
    const V near = hn::MulAdd(a, polynomial(hn::Mul(a, a), erf_near), a);
    const V falling = hn::MulAdd(a, polynomial(hn::Sub(a, one), erf_far), a);
    const V far = hn::Sub(one, exp_of(hn::Neg(falling)));
    return nan_of(x, hn::CopySign(hn::IfThenElse(hn::Lt(a, one), near, far), x));
}
