// SPDX-License-Identifier: MIT
// The host's functions on lines of floats: errors in units in the last place against long double,
// at edges exactly; and the same bits at every width of vectors that the processor has.
#include "engine/pointwise/host_vectors.hpp"
#include "runtime/host_vector_width.hpp"
#include "support/catch.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

using dlprim::host_vector_width;
using namespace dlprim::pointwise;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

struct Checked {
    Op op;
    std::string name;
    long double (*exact)(long double);
    double ulps;  ///< the largest error allowed
};

long double sigmoid(long double x) {
    return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

const std::vector<Checked>& checked() {
    using L = long double;
    static const std::vector<Checked> all = {
        {Op::exp, "exp", [](L x) { return std::exp(x); }, 1},
        {Op::exp2, "exp2", [](L x) { return std::exp2(x); }, 1},
        {Op::expm1, "expm1", [](L x) { return std::expm1(x); }, 1.5},
        {Op::log, "log", [](L x) { return std::log(x); }, 1},
        {Op::log1p, "log1p", [](L x) { return std::log1p(x); }, 1},
        {Op::tanh, "tanh", [](L x) { return std::tanh(x); }, 1.5},
        {Op::sigmoid, "sigmoid", [](L x) { return sigmoid(x); }, 2.2},
        {Op::erf, "erf", [](L x) { return std::erf(x); }, 1.2},
        {Op::sqrt, "sqrt", [](L x) { return std::sqrt(x); }, 0.5},
        {Op::floor, "floor", [](L x) { return std::floor(x); }, 0},
        {Op::ceil, "ceil", [](L x) { return std::ceil(x); }, 0},
        {Op::trunc, "trunc", [](L x) { return std::trunc(x); }, 0},
        {Op::round, "round", [](L x) { return std::nearbyint(x); }, 0},
    };
    return all;
}

// Floats of all exponents and signs, several of each upper half of the bits.
std::vector<float> all_kinds() {
    std::vector<float> values;
    for (std::uint32_t upper = 0; upper < 65536; ++upper)
        for (std::uint32_t lower = upper * 31 % 4096; lower < 65536; lower += 4096)
            values.push_back(std::bit_cast<float>(upper << 16 | lower));
    return values;
}

// The distance of `found` from the exact value in units of the last place of a float there. Where
// the exact value rounds to infinity or to NaN, 0 if that is found, and infinite otherwise.
double ulps_between(float found, long double exact) {
    const auto rounded = static_cast<float>(exact);
    if (std::isnan(rounded)) return std::isnan(found) ? 0 : infinity;
    if (found == rounded && std::isinf(rounded)) return 0;
    if (!std::isfinite(found) || !std::isfinite(rounded)) {
        // Just beyond the largest float, either neighbour is less than a unit away.
        const long double edge = std::fabs(exact) / std::ldexp(1.0L, 128) - 1;
        return std::fabs(edge) < 1e-6L ? 1 : infinity;
    }
    const int exponent = rounded == 0 ? -126 : std::max(std::ilogb(rounded), -126);
    return static_cast<double>(std::fabs(found - exact) / std::ldexp(1.0L, exponent - 23));
}

std::vector<float> computed(int width, Op op, const std::vector<float>& x) {
    std::vector<float> y(x.size());
    REQUIRE(vector_lines(width).compute(op, x.data(), nullptr, nullptr, y.data(),
                                        static_cast<std::int64_t>(x.size())));
    return y;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]) &&
            !(std::isnan(a[i]) && std::isnan(b[i])))
            return false;
    return a.size() == b.size();
}

}  // namespace

TEST_CASE("vector functions are as accurate as documented") {
    const std::vector<float> x = all_kinds();
    for (const Checked& function : checked()) {
        std::vector<long double> exact;
        for (const float value : x) exact.push_back(function.exact(value));
        for (int width = host_vector_width(); width >= 4; width /= 2) {
            const std::vector<float> y = computed(width, function.op, x);
            double worst = 0;
            float at = 0;
            for (std::size_t i = 0; i < x.size(); ++i)
                if (const double ulps = ulps_between(y[i], exact[i]); !(ulps <= worst))
                    worst = ulps, at = x[i];
            INFO(function.name << " at width " << width << ": " << worst << " ulp at " << at);
            CHECK(worst <= function.ulps);
        }
    }
}

TEST_CASE("vector functions are exact at their edges") {
    struct Edge {
        Op op;
        float x, y;
    };
    const std::vector<Edge> edges = {{Op::exp, 0, 1},
                                     {Op::exp, -infinity, 0},
                                     {Op::exp, infinity, infinity},
                                     {Op::exp2, 10, 1024},
                                     {Op::exp2, -149, std::numeric_limits<float>::denorm_min()},
                                     {Op::expm1, -0.0f, -0.0f},
                                     {Op::expm1, -infinity, -1},
                                     {Op::log, 1, 0},
                                     {Op::log, 0, -infinity},
                                     {Op::log, -1, no_number},
                                     {Op::log, infinity, infinity},
                                     {Op::log1p, -0.0f, -0.0f},
                                     {Op::log1p, -1, -infinity},
                                     {Op::log1p, infinity, infinity},
                                     {Op::tanh, -0.0f, -0.0f},
                                     {Op::tanh, 10, 1},
                                     {Op::tanh, -infinity, -1},
                                     {Op::sigmoid, 0, 0.5f},
                                     {Op::sigmoid, 90, 1},
                                     {Op::sigmoid, -infinity, 0},
                                     {Op::erf, -0.0f, -0.0f},
                                     {Op::erf, 4, 1},
                                     {Op::erf, -infinity, -1},
                                     {Op::floor, -0.5f, -1},
                                     {Op::ceil, -0.5f, -0.0f},
                                     {Op::trunc, -0.5f, -0.0f},
                                     {Op::round, 2.5f, 2},
                                     {Op::round, 8388609, 8388609}};
    for (int width = host_vector_width(); width >= 4; width /= 2)
        for (const Edge& edge : edges) {
            const std::vector<float> y = computed(width, edge.op, {edge.x, no_number});
            INFO("instruction " << static_cast<int>(edge.op) << " of " << edge.x << " at width "
                                << width << ": " << y[0]);
            CHECK(same_bits({y[0]}, {edge.y}));
            CHECK(std::isnan(y[1]));
        }
}

TEST_CASE("vectors of every width give the same bits") {
    if (host_vector_width() < 16) {
        WARN("this processor has vectors of one width only");
        return;
    }
    const std::vector<float> x = all_kinds();
    for (const Checked& function : checked()) {
        INFO(function.name);
        CHECK(same_bits(computed(16, function.op, x), computed(8, function.op, x)));
    }
    // Lengths that are no multiples of a vector, from addresses that are not aligned.
    std::vector<float> v(1000);
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::sin(static_cast<float>(i * i));
    const VectorLines &wide = vector_lines(16), &narrow = vector_lines(8);
    for (const std::int64_t n : {0, 1, 7, 15, 16, 17, 31, 33, 100, 511, 997}) {
        const float* const from = v.data() + 3;
        CHECK(wide.sum(from, n) == narrow.sum(from, n));
        CHECK(wide.max(-2, from, n) == narrow.max(-2, from, n));
        CHECK(wide.min(2, from, n) == narrow.min(2, from, n));
        std::vector<float> a(v), b(v);
        wide.hardswish(a.data() + 1, n), narrow.hardswish(b.data() + 1, n);
        wide.clamp(a.data() + 2, -0.5f, 0.5f, n), narrow.clamp(b.data() + 2, -0.5f, 0.5f, n);
        CHECK(same_bits(a, b));
    }
}

TEST_CASE("comparisons of lines know NaN") {
    const std::vector<float> a = {no_number, no_number, 1, 0, -0.0f, 2};
    const std::vector<float> b = {no_number, 1, no_number, 0, 0, 3};
    const std::vector<std::pair<Op, std::vector<float>>> cases = {
        {Op::equal, {0, 0, 0, 1, 1, 0}},
        {Op::not_equal, {1, 1, 1, 0, 0, 1}},
        {Op::less, {0, 0, 0, 0, 0, 1}},
        {Op::greater_equal, {0, 0, 0, 1, 1, 0}},
        {Op::logical_and, {1, 1, 1, 0, 0, 1}},
        {Op::logical_or, {1, 1, 1, 0, 0, 1}},
        {Op::logical_not, {0, 0, 0, 1, 1, 0}},
        {Op::isnan, {1, 1, 0, 0, 0, 0}},
        {Op::max, {no_number, no_number, no_number, 0, 0, 3}},
        {Op::min, {no_number, no_number, no_number, 0, 0, 2}}};
    for (int width = host_vector_width(); width >= 4; width /= 2) {
        std::vector<float> y(a.size());
        const auto n = static_cast<std::int64_t>(a.size());
        for (const auto& [op, wanted] : cases) {
            INFO("instruction " << static_cast<int>(op) << " at width " << width);
            REQUIRE(vector_lines(width).compute(op, a.data(), b.data(), nullptr, y.data(), n));
            CHECK(same_bits(y, wanted));
        }
        const std::vector<float> c(a.size(), 7);
        vector_lines(width).compute(Op::select, a.data(), b.data(), c.data(), y.data(), n);
        CHECK(same_bits(y, {no_number, 1, no_number, 7, 7, 3}));
        std::vector<float> v = {no_number, -1, 7, 2};
        vector_lines(width).clamp(v.data(), 0, 6, 4);
        CHECK(same_bits(v, {no_number, 0, 6, 2}));
        v = {no_number, -4, 4, 1};
        vector_lines(width).hardswish(v.data(), 4);
        CHECK(same_bits(v, {no_number, 0, 4, 4.0f / 6}));
    }
}

TEST_CASE("reductions of lines keep NaN and reach every element") {
    for (int width = host_vector_width(); width >= 4; width /= 2) {
        const VectorLines& lines = vector_lines(width);
        for (const std::size_t n : {1, 16, 33, 64, 100})
            for (std::size_t at = 0; at < n; ++at) {
                std::vector<float> v(n, 1.0f);
                const auto count = static_cast<std::int64_t>(n);
                v[at] = 3;
                CHECK(lines.max(0, v.data(), count) == 3);
                CHECK(lines.sum(v.data(), count) == static_cast<double>(n) + 2);
                v[at] = -3;
                CHECK(lines.min(0, v.data(), count) == -3);
                v[at] = no_number;
                CHECK(std::isnan(lines.max(0, v.data(), count)));
                CHECK(std::isnan(lines.min(0, v.data(), count)));
            }
    }
}
