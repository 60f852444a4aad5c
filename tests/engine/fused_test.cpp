// SPDX-License-Identifier: MIT
// Fused multiply-adds of the host's pointwise interpreter are rounded once.
#include "engine/pointwise/host_fused.hpp"
#include "support/catch.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

using namespace dlprim::pointwise;

namespace {

using Factors = std::array<float, 3>;

/// Sums that are, after rounding to double, halfway between two floats, although the exact sum is
/// not.
std::vector<Factors> hard_cases() {
    std::vector<Factors> cases{
        // (2^24 + 1) +- 2^-40
        {24929, 673, 0x1p-40f},
        {24929, 673, -0x1p-40f},
        {-24929, 673, 0x1p-40f},
        {-24929, 673, -0x1p-40f},
        // 2^-150 + 2^-196 added to 2^-127: halfway between two subnormal numbers except for the
        // last bit.
        {8392705 * 0x1p-98f, 8384513 * 0x1p-98f, 0x1p-127f},
        {-8392705 * 0x1p-98f, 8384513 * 0x1p-98f, 0x1p-127f},
        {8392705 * 0x1p-98f, -8384513 * 0x1p-98f, -0x1p-127f},
        {0x1.fffffep127f, 2, -0x1.fffffep127f},
        {0x1.fffffep127f, 1, 0x1p103f},
        {0x1.fffffep127f, 1, 0x1.fffffep102f},
    };
    const float inf = std::numeric_limits<float>::infinity();
    const std::array<float, 13> ends{0.0f,
                                     -0.0f,
                                     1,
                                     -1,
                                     inf,
                                     -inf,
                                     std::nanf(""),
                                     0x1p-149f,
                                     -0x1p-149f,
                                     0x1p-126f,
                                     0x1.fffffep127f,
                                     -0x1.fffffep127f,
                                     3};
    for (const float a : ends)
        for (const float b : ends)
            for (const float c : ends) cases.push_back({a, b, c});
    return cases;
}

/// Numbers of few bits and very different size, whose sums are often halfway, and arbitrary bits.
std::vector<Factors> random_cases(int count) {
    std::mt19937_64 bits(11);
    std::vector<Factors> cases;
    for (int i = 0; i < count; ++i) {
        const std::uint64_t u = bits(), v = bits();
        const auto few = static_cast<float>(1 + (u & 4095)),
                   more = static_cast<float>(1 + ((u >> 12) & 16383));
        cases.push_back(
            {few, more, std::ldexp(static_cast<float>((v & 15)) - 8, -static_cast<int>(v >> 58))});
        cases.push_back({std::bit_cast<float>(static_cast<std::uint32_t>(u)),
                         std::bit_cast<float>(static_cast<std::uint32_t>(u >> 32)),
                         std::bit_cast<float>(static_cast<std::uint32_t>(v))});
    }
    return cases;
}

bool same(float a, float b) {
    return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

TEST_CASE("a fused multiply-add is rounded once, with the processor's instruction and without") {
    std::vector<Factors> cases = hard_cases();
    const std::vector<Factors> more = random_cases(200000);
    cases.insert(cases.end(), more.begin(), more.end());
    std::vector<float> a, b, c, y(cases.size());
    for (const Factors& one : cases) {
        a.push_back(one[0]);
        b.push_back(one[1]);
        c.push_back(one[2]);
    }
    fused_line(a.data(), b.data(), c.data(), y.data(), static_cast<std::int64_t>(y.size()));
    int by_line = 0, in_double = 0, twice = 0;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const float right = std::fma(a[i], b[i], c[i]);
        by_line += !same(y[i], right);
        in_double += !same(fused_in_double(a[i], b[i], c[i]), right);
        const double sum = static_cast<double>(a[i]) * b[i] + c[i];
        twice += !same(static_cast<float>(sum), right);
    }
    CHECK(by_line == 0);
    CHECK(in_double == 0);
    CHECK(twice > 100);  // otherwise the cases test nothing
    CHECK(std::fma(24929.0f, 673.0f, 0x1p-40f) == 16777218.0f);
}

TEST_CASE("fused multiply-adds of doubles are rounded once") {
    const std::vector<double> a{0x1.0000000000001p0, 3}, b{0x1.fffffffffffffp-1, 5}, c{-1, 0.5};
    std::vector<double> y(2);
    fused_line(a.data(), b.data(), c.data(), y.data(), 2);
    CHECK(y[0] == std::fma(a[0], b[0], c[0]));
    CHECK(y[0] != a[0] * b[0] + c[0]);
    CHECK(y[1] == 15.5);
}
