// SPDX-License-Identifier: MIT
// The table of functions, and the numbers that they are tried with.
#include "runtime/math_functions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace dlprim {
namespace {

using Real = long double;
using Exact = MathFunction::Exact;
using Text = MathFunction::Text;
using Range = MathFunction::Range;

constexpr Range any{-100, 100, false}, unit{-0.999, 0.999, false}, below_overflow{-80, 80, false};
constexpr Range positive{1e-30, 1e30, true}, small_positive{1e-3, 1e3, true}, none{};

Real reciprocal_root(Real a, Real) {
    return 1 / std::sqrt(a);
}

#define DLPRIM_ONE(name) [](Real a, Real) -> Real { return std::name(a); }
#define DLPRIM_TWO(name) [](Real a, Real b) -> Real { return std::name(a, b); }

// The errors are those of table "ULP values for single precision built-in math functions" of the
// specification. It gives none for lgamma.
// PoCL's vectors of sin, cos and tan are wrong where one number is large and another small.
// clang-format off
constexpr MathFunction table[] = {
    {"exp", 1, 3, Exact::edges, Text::vectors, false, DLPRIM_ONE(exp), below_overflow, none},
    {"exp2", 1, 3, Exact::always, Text::vectors, false, DLPRIM_ONE(exp2), {-120, 120, false}, none, "exp"},
    {"expm1", 1, 3, Exact::edges, Text::nothing, false, DLPRIM_ONE(expm1), {-20, 20, false}, none},
    {"log", 1, 3, Exact::edges, Text::vectors, false, DLPRIM_ONE(log), positive, none},
    {"log2", 1, 3, Exact::always, Text::vectors, false, DLPRIM_ONE(log2), positive, none, "log"},
    {"log10", 1, 3, Exact::edges, Text::nothing, false, DLPRIM_ONE(log10), positive, none},
    {"log1p", 1, 2, Exact::edges, Text::nothing, false, DLPRIM_ONE(log1p), {1e-10, 1e10, true}, none},
    {"sqrt", 1, 3, Exact::always, Text::vectors, false, DLPRIM_ONE(sqrt), positive, none},
    {"rsqrt", 1, 2, Exact::edges, Text::nothing, false, reciprocal_root, positive, none},
    {"sin", 1, 4, Exact::edges, Text::small, false, DLPRIM_ONE(sin), any, none},
    {"cos", 1, 4, Exact::edges, Text::small, false, DLPRIM_ONE(cos), any, none},
    {"tan", 1, 5, Exact::edges, Text::small, false, DLPRIM_ONE(tan), any, none},
    {"asin", 1, 4, Exact::edges, Text::nothing, false, DLPRIM_ONE(asin), unit, none},
    {"acos", 1, 4, Exact::edges, Text::nothing, false, DLPRIM_ONE(acos), unit, none},
    {"atan", 1, 5, Exact::edges, Text::nothing, false, DLPRIM_ONE(atan), any, none},
    {"atan2", 2, 6, Exact::edges, Text::nothing, false, DLPRIM_TWO(atan2), any, any},
    {"sinh", 1, 4, Exact::edges, Text::nothing, false, DLPRIM_ONE(sinh), below_overflow, none},
    {"cosh", 1, 4, Exact::edges, Text::nothing, false, DLPRIM_ONE(cosh), below_overflow, none},
    {"tanh", 1, 5, Exact::ends, Text::vectors, false, DLPRIM_ONE(tanh), {-12, 12, false}, none, "exp"},
    {"asinh", 1, 4, Exact::edges, Text::nothing, false, DLPRIM_ONE(asinh), any, none},
    {"acosh", 1, 4, Exact::edges, Text::nothing, false, DLPRIM_ONE(acosh), {1.01, 1e6, true}, none},
    {"atanh", 1, 5, Exact::edges, Text::nothing, false, DLPRIM_ONE(atanh), unit, none},
    {"erf", 1, 16, Exact::ends, Text::vectors, false, DLPRIM_ONE(erf), {-6, 6, false}, none, "exp"},
    {"erfc", 1, 16, Exact::edges, Text::nothing, false, DLPRIM_ONE(erfc), {-4, 8, false}, none},
    {"lgamma", 1, 1000, Exact::edges, Text::nothing, false, DLPRIM_ONE(lgamma), {0.1, 50, true}, none},
    {"hypot", 2, 4, Exact::edges, Text::nothing, false, DLPRIM_TWO(hypot), any, any},
    {"pow", 2, 16, Exact::always, Text::numbers, false, DLPRIM_TWO(pow), small_positive, {-8, 8, false}},
    {"fmod", 2, 0, Exact::always, Text::numbers, true, DLPRIM_TWO(fmod), {-1000, 1000, false}, {0.1, 100, true}},
};
// clang-format on

#undef DLPRIM_ONE
#undef DLPRIM_TWO

/// Edges of functions of one number, beside their negatives.
template <typename T>
std::vector<T> edges_of_one() {
    using Limits = std::numeric_limits<T>;
    std::vector<T> edges{0,
                         T(0.5),
                         1,
                         2,
                         3,
                         4,
                         5,
                         7,
                         8,
                         9,
                         10,
                         16,
                         20,
                         25,
                         40,
                         64,
                         90,
                         100,
                         120,
                         200,
                         800,
                         1000,
                         1024,
                         10000,
                         T(1e5),
                         T(1e6),
                         T(1e-3),
                         T(1e-6),
                         T(1e-20),
                         T(1e30),
                         Limits::infinity(),
                         Limits::quiet_NaN()};
    const std::size_t count = edges.size();
    for (std::size_t i = 0; i < count; ++i) edges.push_back(-edges[i]);
    return edges;
}

/// Pairs of edges.
template <typename T>
void add_pairs(const MathFunction& function, MathTrial<T>& trial) {
    const auto add = [&](T a, T b) {
        trial.a.push_back(a);
        trial.b.push_back(b);
    };
    const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    // In PoCL's vectors of doubles a large exponent makes others' powers wrong: 2.5 to the power of
    // -1 is 1.6 beside 1 to the power of 1e200.
    const T large = static_cast<T>(sizeof(T) == 8 ? 1e200 : 1e30);
    for (const T b : {T(0), T(1), T(-1), T(2), T(-2), T(3), T(4), T(5), T(-5), T(10), inf, -inf,
                      nan, T(0.5), T(12), T(20), large, -large})
        for (const T a : {T(0), T(-0.0), T(1), T(-1), T(2), T(-2), T(3), T(-3), T(8), T(-8), T(10),
                          inf, -inf, nan, T(2.5), T(-0.5), large, 1 / large})
            add(a, b);
    // Powers that are numbers of the type. Intel's 13 to the power of 4 is 28560.999999999996.
    if (std::string_view(function.name) == "pow")
        for (int a = 2; a < 32; ++a)
            for (int b = 2; b < 11; ++b) add(T(a % 3 == 0 ? -a : a), T(b));
}

template <typename T>
T random_number(std::mt19937& random, const Range& range) {
    const double part = static_cast<double>(random()) / 4294967296.0;
    if (range.ratio)
        return static_cast<T>(range.low * std::exp(part * std::log(range.high / range.low)));
    return static_cast<T>(range.low + part * (range.high - range.low));
}

}  // namespace

std::span<const MathFunction> math_functions() {
    return table;
}

const MathFunction* find_math_function(std::string_view name) {
    for (const MathFunction& function : table)
        if (function.name == name) return &function;
    return nullptr;
}

template <typename T>
MathTrial<T> math_trial(const MathFunction& function, std::size_t numbers) {
    MathTrial<T> trial;
    if (function.arity == 2) {
        add_pairs(function, trial);
    } else {
        trial.a = edges_of_one<T>();
        trial.b.resize(trial.a.size());
    }
    trial.edges = trial.a.size();
    std::mt19937 random(7);
    while (trial.a.size() < numbers || trial.a.size() % 16 != 0) {
        trial.a.push_back(random_number<T>(random, function.a));
        trial.b.push_back(random_number<T>(random, function.b));
    }
    return trial;
}

template <typename T>
bool is_right(const MathFunction& function, const MathTrial<T>& trial, std::size_t i, T result) {
    using Limits = std::numeric_limits<T>;
    const Real exact = function.value(trial.a[i], trial.b[i]);
    const T rounded = static_cast<T>(exact);
    if (std::isnan(exact)) return std::isnan(result);
    if (std::isnan(result)) return false;
    const Real size = std::fabs(exact);
    // Where numbers below the smallest normal one may count as 0.
    if (size < Limits::min() && exact != 0) return std::fabs(result) <= Limits::min();
    const bool edge = i < trial.edges, whole = exact == rounded;
    const bool plain = size == 0 || size == 1 || std::isinf(rounded);
    if (edge && whole && (plain || function.exact == Exact::always)) return result == rounded;
    if (function.exact == Exact::ends && std::fabs(rounded) == 1 &&
        1 - size < Real(0.2) * Limits::epsilon())
        return result == rounded;
    if (std::isinf(rounded)) return result == rounded;
    int exponent = 0;
    std::frexp(exact, &exponent);
    const Real ulp = std::ldexp(Real(1), exponent - Limits::digits);
    return std::fabs(static_cast<Real>(result) - exact) <= (function.ulps + Real(0.5)) * ulp;
}

template MathTrial<float> math_trial(const MathFunction&, std::size_t);
template MathTrial<double> math_trial(const MathFunction&, std::size_t);
template bool is_right(const MathFunction&, const MathTrial<float>&, std::size_t, float);
template bool is_right(const MathFunction&, const MathTrial<double>&, std::size_t, double);

}  // namespace dlprim
