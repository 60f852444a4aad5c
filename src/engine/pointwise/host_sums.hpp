// SPDX-License-Identifier: MIT
// Reductions on the host: accumulators, and how a chunk of values is added to them. Only
// host_run.cpp includes this, because it is compiled with options of its own.
#pragma once

#include "engine/pointwise/host_lines.hpp"
#include "engine/pointwise/job.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace dlprim::pointwise::lines {

/// Sums are in double, or for integers in integers.
template <typename T>
using Sum = std::conditional_t<std::is_integral_v<T>, T, double>;

/// The initial value of a reduction.
template <typename T>
Sum<T> start(const JobOutput& out) {
    using A = Sum<T>;
    using Limits = std::numeric_limits<A>;
    switch (out.kind) {
        case Output::Kind::prod:
            return A(1);
        case Output::Kind::max:
            return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
        case Output::Kind::min:
            return Limits::has_infinity ? Limits::infinity() : Limits::max();
        default:
            return A(0);
    }
}

/// Combines two values. `scratch` is used by programs of custom reductions.
template <typename A>
A fold(const JobOutput& out, A a, A b, std::vector<double>& scratch) {
    switch (out.kind) {
        case Output::Kind::prod:
            return a * b;
        case Output::Kind::max:
            return a > b || is_nan(a) ? a : b;
        case Output::Kind::min:
            return a < b || is_nan(a) ? a : b;
        case Output::Kind::custom: {
            const double both[] = {static_cast<double>(a), static_cast<double>(b)};
            const Shape shape;
            pointwise::run(*out.combine, {both, nullptr, nullptr, &shape, 0}, scratch);
            return static_cast<A>(scratch[static_cast<std::size_t>(out.combine->results[0])]);
        }
        default:
            return a + b;
    }
}

/// Results of one output, one per result and part.
template <typename T>
struct Sums {
    std::vector<Sum<T>> values;
    std::vector<std::uint8_t> has;  ///< for custom reductions: whether there is a value
};

/// Combines `n` values of a run into the accumulators from `place` on, which are `stride` apart.
template <typename T>
void reduce(const JobOutput& out, Sums<T>& sums, std::size_t place, std::size_t stride, const T* v,
            std::int64_t n, std::vector<double>& scratch) {
    using A = Sum<T>;
    A* into = sums.values.data() + place;
    if (out.kind == Output::Kind::custom) {
        for (std::int64_t j = 0; j < n; ++j) {
            const std::size_t at = static_cast<std::size_t>(j) * stride;
            std::uint8_t& has = sums.has[place + at];
            into[at] =
                has ? fold<A>(out, into[at], static_cast<A>(v[j]), scratch) : static_cast<A>(v[j]);
            has = 1;
        }
        return;
    }
    if (stride != 0) {
        if (out.kind == Output::Kind::sum && stride == 1) {
            for (std::int64_t j = 0; j < n; ++j) into[j] += static_cast<A>(v[j]);
            return;
        }
        for (std::int64_t j = 0; j < n; ++j) {
            A& to = into[static_cast<std::size_t>(j) * stride];
            to = fold<A>(out, to, static_cast<A>(v[j]), scratch);
        }
        return;
    }
    if constexpr (std::is_same_v<T, float>) {
        const VectorLines& vectors = vector_lines();
        if (out.kind == Output::Kind::sum) {
            *into += vectors.sum(v, n);
            return;
        }
        if (out.kind == Output::Kind::max || out.kind == Output::Kind::min) {
            const auto extreme = out.kind == Output::Kind::max ? vectors.max : vectors.min;
            *into = extreme(static_cast<float>(*into), v, n);
            return;
        }
    }
    if (out.kind == Output::Kind::sum) {
        A lanes[8] = {};
        std::int64_t j = 0;
        for (; j + 8 <= n; j += 8)
            for (int l = 0; l < 8; ++l) lanes[l] += static_cast<A>(v[j + l]);
        for (; j < n; ++j) lanes[0] += static_cast<A>(v[j]);
        *into += ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
                 ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
        return;
    }
    A total = *into;
    for (std::int64_t j = 0; j < n; ++j) total = fold<A>(out, total, static_cast<A>(v[j]), scratch);
    *into = total;
}

}  // namespace dlprim::pointwise::lines
