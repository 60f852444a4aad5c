// SPDX-License-Identifier: MIT
// The kernel of matmul.wgmma_split and mma_split, emulated on the host, beside a product in double.
// Built for each way: WM, PRODUCTS, TA, TB as the kernel has them.
#include "work_group.hpp"

#include <cstdio>
#include <random>

#define HAS_RESIDUAL 0
#define EPILOGUE(v, r)
#define A_BATCH(batch) ((batch)*a_batch)
#define B_BATCH(batch) ((batch)*b_batch)
namespace product {
#include "matmul/wgmma_split.inc"
}

struct Shape {
    int m, n, k, batches, splits;
};

// Relative L2 error.
static double run(const Shape& s) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::vector<float> a(static_cast<std::size_t>(s.batches * s.m * s.k)),
        b(static_cast<std::size_t>(s.batches * s.k * s.n)), bias(static_cast<std::size_t>(s.n)),
        c(static_cast<std::size_t>(s.splits * s.batches * s.m * s.n), NAN);
    for (auto* all : {&a, &b, &bias})
        for (float& v : *all) v = normal(random);
    const float alpha = 0.5f;
    const int tiles_m = (s.m + 64 * WM - 1) / (64 * WM), tiles_n = (s.n + 127) / 128;
    const int k_part = ((s.k + s.splits - 1) / s.splits + 63) / 64 * 64;
    run_kernel(tiles_m * tiles_n * s.batches * s.splits, 1, 256, [&] {
        product::matmul_wgmma_split(a.data(), 0, b.data(), 0, bias.data(), 0, nullptr, 0, c.data(),
                                    0, s.m, s.n, s.k, k_part, tiles_m, tiles_n, s.batches,
                                    s.m * s.k, s.k * s.n, alpha, s.splits == 1);
    });
    double error = 0, size = 0;
    for (int i = 0; i < s.batches * s.m * s.n; ++i) {
        const int column = i % s.n, row = i / s.n % s.m, batch = i / s.n / s.m;
        double exact = 0, made = 0;
        for (int k = 0; k < s.k; ++k)
            exact += static_cast<double>(a[static_cast<std::size_t>(
                         batch * s.m * s.k + (TA ? k * s.m + row : row * s.k + k))]) *
                     static_cast<double>(b[static_cast<std::size_t>(
                         batch * s.k * s.n + (TB ? column * s.k + k : k * s.n + column))]);
        exact *= static_cast<double>(alpha);
        if (s.splits == 1) exact += static_cast<double>(bias[static_cast<std::size_t>(column)]);
        for (int z = 0; z < s.splits; ++z)
            made += static_cast<double>(c[static_cast<std::size_t>(z * s.batches * s.m * s.n + i)]);
        error += (made - exact) * (made - exact);
        size += exact * exact;
    }
    return std::sqrt(error / size);
}

int main() {
    const double bound = PRODUCTS == 3 ? 1e-6 : 1e-3;
    int failed = 0;
    // No tile is filled; several tiles; batches; parts of k.
    for (const Shape& s : {Shape{5, 7, 9, 1, 1}, Shape{130, 150, 200, 1, 1},
                           Shape{70, 129, 65, 2, 1}, Shape{64, 128, 448, 1, 2}}) {
        for (int order = 0; order < ORDERS; ++order) {
            const char* const when = set_order(order);
            const double error = run(s);
            const bool bad = !(error <= bound);
            std::printf("%s %d x %d x %d, %d batches, %d parts, %s: relative error %.2g\n",
                        bad ? "FAILED" : "ok", s.m, s.n, s.k, s.batches, s.splits, when, error);
            failed += bad;
        }
    }
    return failed == 0 ? 0 : 1;
}
