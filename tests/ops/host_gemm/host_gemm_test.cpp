// SPDX-License-Identifier: MIT
// Compares host_gemm with naive products in double, and checks that results do not depend on the
// number of threads. Products of small integers must be exact.
#include "engine/host_gemm.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

using namespace dlprim;

namespace {

std::vector<float> random_floats(std::int64_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> made;
    for (std::int64_t i = 0; i < count; ++i) made.push_back(normal(random));
    return made;
}

/// Differences of bytes: from -255 to 255, the ends often.
std::vector<float> random_integers(std::int64_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> number(-320, 320);
    std::vector<float> made;
    for (std::int64_t i = 0; i < count; ++i)
        made.push_back(static_cast<float>(std::clamp(number(random), -255, 255)));
    return made;
}

}  // namespace

TEST_CASE("products of all shapes, transposed or not") {
    HostPool one(1), three(3);
    const std::array<std::int64_t, 3> sizes[] = {
        {1, 1, 1}, {5, 7, 3},     {2, 50, 100}, {1, 33, 1000}, {0, 4, 4},    {3, 0, 2},
        {3, 3, 0}, {13, 33, 257}, {12, 32, 8},  {130, 61, 7},  {61, 500, 65}};
    for (const auto& [m, n, k] : sizes)
        for (int transposed = 0; transposed < 4; ++transposed)
            for (const float beta : {0.0f, 0.5f}) {
                const bool ta = transposed & 1, tb = transposed & 2;
                INFO(m << " x " << n << " x " << k << " transposed " << ta << tb << " beta "
                       << beta);
                // Leading dimensions larger than the matrices, and two products.
                const std::int64_t lda = (ta ? m : k) + 2, ldb = (tb ? k : n) + 3, ldc = n + 1;
                const std::int64_t size_a = (ta ? k : m) * lda, size_b = (tb ? n : k) * ldb;
                const std::vector<float> a = random_floats(2 * size_a, 1);
                const std::vector<float> b = random_floats(2 * size_b, 2);
                const std::vector<float> start(static_cast<std::size_t>(2 * m * ldc),
                                               beta == 0 ? NAN : 0.25f);
                std::vector<float> c = start, other = start;
                GemmProblem product{2,
                                    m,
                                    n,
                                    k,
                                    {a.data(), lda, size_a, ta},
                                    {b.data(), ldb, size_b, tb},
                                    c.data(),
                                    ldc,
                                    m * ldc,
                                    2,
                                    beta};
                host_gemm(one, product);
                product.c = other.data();
                host_gemm(three, product);
                double error = 0, size = 1e-30;
                bool same = true;
                for (std::int64_t batch = 0; batch < 2; ++batch)
                    for (std::int64_t i = 0; i < m; ++i)
                        for (std::int64_t j = 0; j < n; ++j) {
                            double wanted = 0;
                            for (std::int64_t p = 0; p < k; ++p)
                                wanted += static_cast<double>(a[static_cast<std::size_t>(
                                              batch * size_a + (ta ? p * lda + i : i * lda + p))]) *
                                          static_cast<double>(b[static_cast<std::size_t>(
                                              batch * size_b + (tb ? j * ldb + p : p * ldb + j))]);
                            wanted = 2 * wanted + (beta == 0 ? 0 : 0.125);
                            const auto at = static_cast<std::size_t>(batch * m * ldc + i * ldc + j);
                            error += std::pow(wanted - static_cast<double>(c[at]), 2);
                            size += wanted * wanted;
                            same = same && c[at] == other[at];
                        }
                CHECK(std::sqrt(error / size) < 1e-6);
                CHECK(same);
            }
}

TEST_CASE("products of small integers are exact, packed or not") {
    HostPool one(1), three(3);
    // K is below 258, so that floats hold the sums; odd, even, and over several blocks of columns.
    const std::array<std::int64_t, 3> sizes[] = {{1, 1, 1},   {1, 70, 3},    {3, 33, 255},
                                                 {4, 16, 2},  {5, 7, 31},    {13, 33, 257},
                                                 {24, 65, 1}, {130, 500, 64}};
    for (const auto& [m, n, k] : sizes)
        for (int transposed = 0; transposed < 4; ++transposed) {
            const bool ta = transposed & 1, tb = transposed & 2;
            INFO(m << " x " << n << " x " << k << " transposed " << ta << tb);
            const std::vector<float> a = random_integers(m * k, 1), b = random_integers(k * n, 2);
            const GemmOperand left{a.data(), ta ? m : k, 0, ta}, right{b.data(), tb ? k : n, 0, tb};
            std::vector<float> c(static_cast<std::size_t>(m * n), NAN), other = c, floats = c;
            GemmProblem product{1, m, n, k, left, right, c.data(), n, 0};
            product.small_integers = true;
            host_gemm(one, product);
            const PairPanels panels(GemmSide::b, 1, m, n, k);
            std::vector<float> packed(static_cast<std::size_t>(panels.floats()));
            pack_pairs(three, panels, GemmMatrix(b.data(), tb ? k : 1, tb ? 1 : n, 0),
                       packed.data());
            product.b = {packed.data(), 0, 0, false, true};
            product.c = other.data();
            host_gemm(three, product);
            product = {1, m, n, k, left, right, floats.data(), n, 0};
            host_gemm(one, product);
            CHECK(c == floats);
            CHECK(other == floats);
        }
}

TEST_CASE("blocks of the largest factors do not overflow") {
    HostPool pool(2);
    constexpr std::int64_t k = 1025;
    for (const float sign : {1.0f, -1.0f}) {
        const std::vector<float> a(k, 2047), b(k, sign * 2047);
        float c = NAN;
        GemmProblem product{1, 1, 1, k, {a.data(), k}, {b.data(), 1}, &c, 1, 0};
        product.small_integers = true;
        host_gemm(pool, product);
        CHECK(c == sign * 4294964224.0f);  // 1025 * 2047 * 2047, rounded to float
    }
}
