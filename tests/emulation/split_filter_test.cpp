// SPDX-License-Identifier: MIT
// Runs the kernel of conv2d_backward_filter.wgmma_split and mma_split, emulated on the host, and
// compares it with a filter gradient in double. The test is built once per variant: WM, PRODUCTS,
// KERNEL_H, KERNEL_W, TAP_OUTER, ROW_TAIL, H, W, OH, OW, STRIDE_H and STRIDE_W are the kernel's
// defines, and PAD is the padding.
#include "work_group.hpp"

#include <cstdio>
#include <random>

#define EPILOGUE(v, at)
namespace product {
#include "conv2d/split_filter.inc"
}

struct Shape {
    int n, in, out, splits;
};

// Returns the relative L2 error.
static double run(const Shape& s) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const int taps = KERNEL_H * KERNEL_W, pixels = s.n * OH * OW, steps = (pixels + 63) / 64;
    const int count = s.out * s.in * taps, part = (steps + s.splits - 1) / s.splits;
    std::vector<float> x(static_cast<std::size_t>(s.n * s.in * H * W)),
        dy(static_cast<std::size_t>(pixels * s.out)),
        parts(static_cast<std::size_t>(count * s.splits), NAN);
    for (auto* all : {&x, &dy})
        for (float& v : *all) v = normal(random);
    const int tiles_m = (s.out + 64 * WM - 1) / (64 * WM), tiles_n = (s.in * taps + 127) / 128;
    run_kernel(tiles_m * tiles_n * s.splits, 1, 256, [&] {
        product::split_filter(x.data(), 0, dy.data(), 0, parts.data(), 0, pixels, s.in, s.out, PAD,
                              PAD, 1, 1, steps, part, tiles_m, tiles_n, count);
    });
    double error = 0, size = 0;
    for (int i = 0; i < count; ++i) {
        const int k = i % taps, c = i / taps % s.in, o = i / taps / s.in;
        double exact = 0, made = 0;
        for (int z = 0; z < s.splits; ++z)
            made += static_cast<double>(parts[static_cast<std::size_t>(z * count + i)]);
        for (int p = 0; p < pixels; ++p) {
            const int ox = p % OW, oy = p / OW % OH, n = p / OW / OH;
            const int iy = oy * STRIDE_H - PAD + k / KERNEL_W,
                      ix = ox * STRIDE_W - PAD + k % KERNEL_W;
            if (iy < 0 || ix < 0 || iy >= H || ix >= W) continue;
            exact += static_cast<double>(
                         dy[static_cast<std::size_t>((n * s.out + o) * OH * OW + oy * OW + ox)]) *
                     static_cast<double>(
                         x[static_cast<std::size_t>(((n * s.in + c) * H + iy) * W + ix)]);
        }
        error += (made - exact) * (made - exact);
        size += exact * exact;
    }
    return std::sqrt(error / size);
}

int main() {
    const double bound = PRODUCTS == 3 ? 1e-6 : 1e-3;
    int failed = 0, done = 0;
    // The cases have tiles that are not full, several tiles, parts of K, and enough steps to use
    // stages again.
    for (const Shape& s :
         {Shape{1, 3, 5, 1}, Shape{3, 48, 136, 2}, Shape{5, 16, 128, 1}, Shape{7, 5, 64, 1}}) {
        if ((s.in % 16 == 0) != TAP_OUTER || (s.out % (64 * WM) != 0 && !ROW_TAIL)) continue;
        for (int order = 0; order < ORDERS; ++order) {
            const char* const when = set_order(order);
            const double error = run(s);
            const bool bad = !(error <= bound);
            std::printf("%s %d x %d x %d x %d, %d channels, %d parts, %s: relative error %.2g\n",
                        bad ? "FAILED" : "ok", s.n, s.in, H, W, s.out, s.splits, when, error);
            failed += bad;
            ++done;
        }
    }
    return failed == 0 && done > 0 ? 0 : 1;
}
