// SPDX-License-Identifier: MIT
// Lines of floats by Highway's vectors: foreach_target.h includes this file once for AVX2 and once
// for AVX-512. Without Highway, and for processors without AVX2, portable_lanes.hpp takes the
// place of its operations. Only Highway's headers are used, since Debian 12 has no static library;
// so the processor is chosen here and not by HWY_DYNAMIC_DISPATCH.
//
// The build compiles this file alone and without contraction of a * b + c (src/CMakeLists.txt).
#include "engine/pointwise/host_vectors.hpp"

#include "runtime/host_vector_width.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#if DLPRIM_WITH_HIGHWAY
#define HWY_DISABLED_TARGETS \
    (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/pointwise/host_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#else
#define HWY_NAMESPACE N_PORTABLE
#define HWY_BEFORE_NAMESPACE() static_assert(true)
#define HWY_AFTER_NAMESPACE() static_assert(true)
#define HWY_INLINE inline
#define HWY_ATTR
#define HWY_ONCE 1
#endif

#include "engine/pointwise/portable_lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace dlprim::pointwise {
namespace HWY_NAMESPACE {

#if DLPRIM_WITH_HIGHWAY && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
namespace hn = hwy::HWY_NAMESPACE;
using Line = hn::ScalableTag<float>;

// The first n < Lanes(d) floats at `from`, and zeros.
template <class D>
HWY_INLINE hn::Vec<D> load_rest(D d, const float* from, std::int64_t n) {
    return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(n)), d, from);
}
template <class D>
HWY_INLINE void store_rest(hn::Vec<D> v, D d, float* to, std::int64_t n) {
    hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(n)), d, to);
}
constexpr bool has_fused = true;
#else
namespace hn = portable_lanes;
using Line = hn::FloatLane;

// A line of single lanes has no rest.
inline float load_rest(Line, const float*, std::int64_t) {
    return 0;
}
inline void store_rest(float, Line, float*, std::int64_t) {}
constexpr bool has_fused = false;
#endif

#include "engine/pointwise/float_functions.hpp"

using std::int64_t;

template <class F>
HWY_INLINE void map(const float* a, float* y, int64_t n, F f) {
    const Line d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t j = 0;
    for (; j + lanes <= n; j += lanes) hn::StoreU(f(d, hn::LoadU(d, a + j)), d, y + j);
    if (j < n) store_rest(f(d, load_rest(d, a + j, n - j)), d, y + j, n - j);
}
template <class F>
HWY_INLINE void map(const float* a, const float* b, float* y, int64_t n, F f) {
    const Line d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t j = 0;
    for (; j + lanes <= n; j += lanes)
        hn::StoreU(f(d, hn::LoadU(d, a + j), hn::LoadU(d, b + j)), d, y + j);
    if (j < n)
        store_rest(f(d, load_rest(d, a + j, n - j), load_rest(d, b + j, n - j)), d, y + j, n - j);
}
template <class F>
HWY_INLINE void map(const float* a, const float* b, const float* c, float* y, int64_t n, F f) {
    const Line d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t j = 0;
    for (; j + lanes <= n; j += lanes)
        hn::StoreU(f(d, hn::LoadU(d, a + j), hn::LoadU(d, b + j), hn::LoadU(d, c + j)), d, y + j);
    if (j < n)
        store_rest(f(d, load_rest(d, a + j, n - j), load_rest(d, b + j, n - j),
                     load_rest(d, c + j, n - j)),
                   d, y + j, n - j);
}

// NaN if an operand is, as p > q || isnan(p) ? p : q, of vectors and of single floats.
struct Max {
    template <class V>
    HWY_INLINE V operator()(V p, V q) const {
        return hn::IfThenElse(hn::Or(hn::Lt(q, p), hn::IsNaN(p)), p, q);
    }
    HWY_INLINE float operator()(float p, float q) const { return p > q || p != p ? p : q; }
};
struct Min {
    template <class V>
    HWY_INLINE V operator()(V p, V q) const {
        return hn::IfThenElse(hn::Or(hn::Lt(p, q), hn::IsNaN(p)), p, q);
    }
    HWY_INLINE float operator()(float p, float q) const { return p < q || p != p ? p : q; }
};

// Whether lanes are not 0, as NaN is not. (Highway's Ne is false for NaN on x86.)
template <class D, class V>
HWY_INLINE auto is_true(D d, V v) {
    return hn::Not(hn::Eq(v, hn::Zero(d)));
}
// Truth as a number.
template <class D, class M>
HWY_INLINE auto number_of(D d, M truth) {
    return hn::IfThenElseZero(truth, hn::Set(d, 1.0f));
}

// One instruction with one, two or three operands. An attribute of a lambda is needed because those
// of a namespace do not reach it.
#define DLPRIM_LINE1(OP, VALUE)                    \
    case Op::OP:                                   \
        map(a, y, n, [](auto d, auto p) HWY_ATTR { \
            static_cast<void>(d);                  \
            return VALUE;                          \
        });                                        \
        return true;
#define DLPRIM_LINE2(OP, VALUE)                               \
    case Op::OP:                                              \
        map(a, b, y, n, [](auto d, auto p, auto q) HWY_ATTR { \
            static_cast<void>(d);                             \
            return VALUE;                                     \
        });                                                   \
        return true;

bool compute_arithmetic(Op op, const float* a, const float* b, const float* c, float* y,
                        int64_t n) {
    switch (op) {
        DLPRIM_LINE2(add, hn::Add(p, q))
        DLPRIM_LINE2(sub, hn::Sub(p, q))
        DLPRIM_LINE2(mul, hn::Mul(p, q))
        DLPRIM_LINE2(div, hn::Div(p, q))
        DLPRIM_LINE1(neg, hn::Neg(p))
        DLPRIM_LINE1(abs, hn::Abs(p))
        DLPRIM_LINE1(sqrt, hn::Sqrt(p))
        DLPRIM_LINE1(rsqrt, hn::Div(hn::Set(d, 1.0f), hn::Sqrt(p)))
        DLPRIM_LINE2(max, Max()(p, q))
        DLPRIM_LINE2(min, Min()(p, q))
        case Op::select:
            map(a, b, c, y, n, [](auto d, auto p, auto q, auto r) HWY_ATTR {
                return hn::IfThenElse(is_true(d, p), q, r);
            });
            return true;
        case Op::fma:
            if (!has_fused) return false;
            map(a, b, c, y, n,
                [](auto, auto p, auto q, auto r) HWY_ATTR { return hn::MulAdd(p, q, r); });
            return true;
        default:
            return false;
    }
}

bool compute_truth(Op op, const float* a, const float* b, float* y, int64_t n) {
    switch (op) {
        DLPRIM_LINE2(less, number_of(d, hn::Lt(p, q)))
        DLPRIM_LINE2(less_equal, number_of(d, hn::Le(p, q)))
        DLPRIM_LINE2(greater, number_of(d, hn::Lt(q, p)))
        DLPRIM_LINE2(greater_equal, number_of(d, hn::Le(q, p)))
        DLPRIM_LINE2(equal, number_of(d, hn::Eq(p, q)))
        DLPRIM_LINE2(not_equal, number_of(d, hn::Not(hn::Eq(p, q))))
        DLPRIM_LINE2(logical_and, number_of(d, hn::And(is_true(d, p), is_true(d, q))))
        DLPRIM_LINE2(logical_or, number_of(d, hn::Or(is_true(d, p), is_true(d, q))))
        DLPRIM_LINE1(logical_not, number_of(d, hn::Eq(p, hn::Zero(d))))
        DLPRIM_LINE1(isnan, number_of(d, hn::IsNaN(p)))
        default:
            return false;
    }
}

bool compute_function(Op op, const float* a, float* y, int64_t n) {
    switch (op) {
        DLPRIM_LINE1(exp, exp_of(p))
        DLPRIM_LINE1(exp2, exp2_of(p))
        DLPRIM_LINE1(expm1, expm1_of(p))
        DLPRIM_LINE1(log, log_of(p))
        DLPRIM_LINE1(log1p, log1p_of(p))
        DLPRIM_LINE1(tanh, tanh_of(p))
        DLPRIM_LINE1(sigmoid, sigmoid_of(p))
        DLPRIM_LINE1(erf, erf_of(p))
        DLPRIM_LINE1(round, hn::Round(p))
        DLPRIM_LINE1(floor, floor_of(p))
        DLPRIM_LINE1(ceil, hn::Neg(floor_of(hn::Neg(p))))
        DLPRIM_LINE1(trunc, hn::CopySign(floor_of(hn::Abs(p)), p))
        default:
            return false;
    }
}
#undef DLPRIM_LINE1
#undef DLPRIM_LINE2

bool compute(Op op, const float* a, const float* b, const float* c, float* y, int64_t n) {
    return compute_arithmetic(op, a, b, c, y, n) || compute_truth(op, a, b, y, n) ||
           compute_function(op, a, y, n);
}

void clamp_line(float* v, float low, float high, int64_t n) {
    map(v, v, n, [low, high](auto d, auto p) HWY_ATTR {
        const auto least = hn::Set(d, low), most = hn::Set(d, high);
        return hn::IfThenElse(hn::Lt(p, least), least, hn::IfThenElse(hn::Lt(most, p), most, p));
    });
}

void hardswish_line(float* v, int64_t n) {
    map(v, v, n, [](auto d, auto p) HWY_ATTR {
        const auto three = hn::Set(d, 3.0f);
        const auto between = hn::Div(hn::Mul(p, hn::Add(p, three)), hn::Set(d, 6.0f));
        const auto above = hn::IfThenElse(hn::Le(three, p), p, between);
        return hn::IfThenElse(hn::Le(p, hn::Neg(three)), hn::Sub(p, p), above);
    });
}

// Reductions are loops over sixteen lanes, which the compiler keeps in as many vectors as they
// take.
constexpr int lane_count = 16;

double sum(const float* v, int64_t n) {
    double lanes[lane_count] = {};
    int64_t j = 0;
    for (; j + lane_count <= n; j += lane_count)
        for (int l = 0; l < lane_count; ++l) lanes[l] += static_cast<double>(v[j + l]);
    for (int l = 0; j < n; ++j, ++l) lanes[l] += static_cast<double>(v[j]);
    for (int half = lane_count / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    return lanes[0];
}

// Folds v by `better`, Max or Min, in 32 lanes: enough vectors to hide the latency.
template <class Better>
HWY_INLINE float extreme(float start, const float* v, int64_t n, Better better) {
    constexpr int lanes = 32;
    const Line d;
    constexpr auto width = static_cast<int>(hn::MaxLanes(Line()));
    decltype(hn::Zero(d)) held[lanes / width];
    for (auto& one : held) one = hn::Set(d, start);
    int64_t j = 0;
    for (; j + lanes <= n; j += lanes)
        for (int i = 0; i < lanes / width; ++i)
            held[i] = better(held[i], hn::LoadU(d, v + j + i * width));
    float rest[lanes];
    for (int i = 0; i < lanes / width; ++i) hn::StoreU(held[i], d, rest + i * width);
    for (int l = 0; j < n; ++j, ++l) rest[l] = better(rest[l], v[j]);
    for (int half = lanes / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) rest[l] = better(rest[l], rest[l + half]);
    return rest[0];
}
float max(float start, const float* v, int64_t n) {
    return extreme(start, v, n, Max());
}
float min(float start, const float* v, int64_t n) {
    return extreme(start, v, n, Min());
}

const VectorLines& lines() {
    static const VectorLines table{compute, clamp_line, hardswish_line, sum, max, min};
    return table;
}

}  // namespace HWY_NAMESPACE
}  // namespace dlprim::pointwise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dlprim::pointwise {

const VectorLines& vector_lines(int width) {
#if DLPRIM_WITH_HIGHWAY
#if HWY_TARGETS & HWY_AVX3
    if (width >= 16) return N_AVX3::lines();
#endif
#if HWY_TARGETS & HWY_AVX2
    if (width >= 8) return N_AVX2::lines();
#endif
    static_cast<void>(width);
    return HWY_STATIC_DISPATCH(lines)();
#else
    static_cast<void>(width);
    return N_PORTABLE::lines();
#endif
}

const VectorLines& vector_lines() {
    static const VectorLines& found = vector_lines(host_vector_width());
    return found;
}

}  // namespace dlprim::pointwise
#endif  // HWY_ONCE
