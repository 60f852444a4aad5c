// SPDX-License-Identifier: MIT
// Runs the kernels of conv2d_backward_filter.wgmma_half, emulated on the host, and compares them
// with a filter gradient in double. The test is built once per tile and type, for one geometry
// each: KIND, STAGES, NEAR, WM, BN, PARTS, KERNEL_H, KERNEL_W, H, W, OH, OW, STRIDE_H and STRIDE_W
// are the kernel's defines.
#include "work_group.hpp"

#include <cstdio>
#include <random>

#define EPILOGUE(v, at)
namespace product {
#include "conv2d/stored16_filter.inc"
}
namespace sum {
#include "conv2d/stored16_filter_sum.inc"
}

namespace {

struct Shape {
    int n, in, out, pad, dilate, splits, offset;
};

// Returns the relative L2 error.
double run(const Shape& s) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const int taps = KERNEL_H * KERNEL_W, pixels = s.n * OH * OW, steps = (pixels + 63) / 64;
    const auto fill = [&](int count) {
        // Elements in front of the data and behind it are NaN.
        std::vector<ushort> bits(static_cast<std::size_t>(count + s.offset + 8), 0x7fff);
        for (int i = 0; i < count; ++i) {
            const float v = normal(random);
            bits[static_cast<std::size_t>(i + s.offset)] =
                static_cast<ushort>(KIND == 1 ? half_of(v) : bfloat_of(v));
        }
        return bits;
    };
    const std::vector<ushort> x = fill(s.n * H * W * s.in), dy = fill(pixels * s.out);
    const int count = s.out * s.in * taps;
    std::vector<float> dweight(static_cast<std::size_t>(count), NAN),
        parts(static_cast<std::size_t>(count * s.splits), NAN);
    const int tiles_m = (s.out + 64 * WM - 1) / (64 * WM),
              tiles_n = ((s.in + 63) / 64 * taps + BN / 64 - 1) / (BN / 64);
    run_kernel(tiles_m * tiles_n * s.splits, 1, 256, [&] {
        product::stored16_filter(
            x.data(), static_cast<ulong>(s.offset), dy.data(), static_cast<ulong>(s.offset),
            PARTS ? parts.data() : dweight.data(), 0, pixels, s.in, s.out, s.pad, s.pad, s.dilate,
            s.dilate, steps, (steps + s.splits - 1) / s.splits, tiles_m, tiles_n, count);
    });
    if (PARTS)
        run_kernel((count + 31) / 32, 1, 256, [&] {
            sum::stored16_filter_sum(parts.data(), 0, dweight.data(), 0, count, s.splits, taps,
                                     s.in);
        });
    const auto value = [&](const std::vector<ushort>& from, int i) {
        return static_cast<double>(
            float_of_kind(from[static_cast<std::size_t>(i + s.offset)], KIND));
    };
    double error = 0, size = 0;
    for (int i = 0; i < count; ++i) {
        const int k = i % taps, c = i / taps % s.in, o = i / taps / s.in;
        double exact = 0;
        for (int p = 0; p < pixels; ++p) {
            const int ox = p % OW, oy = p / OW % OH, n = p / OW / OH;
            const int iy = oy * STRIDE_H - s.pad + k / KERNEL_W * s.dilate,
                      ix = ox * STRIDE_W - s.pad + k % KERNEL_W * s.dilate;
            if (iy < 0 || ix < 0 || iy >= H || ix >= W) continue;
            exact += value(dy, p * s.out + o) * value(x, ((n * H + iy) * W + ix) * s.in + c);
        }
        const double d = static_cast<double>(dweight[static_cast<std::size_t>(i)]) - exact;
        error += d * d;
        size += exact * exact;
    }
    return std::sqrt(error / size);
}

}  // namespace

int main() {
    // Factors are exact. Sums are float, of at most a thousand terms.
    const double bound = 3e-6;
    int failed = 0, done = 0;
    // The last two cases have enough steps to use stages again.
    for (const Shape& s : {Shape{1, 8, 8, 1, 1, 1, 0}, Shape{2, 72, 136, 1, 1, 1, 0},
                           Shape{3, 136, 24, 0, 2, 4, 0}, Shape{2, 64, 64, 1, 1, 2, 8},
                           Shape{14, 8, 72, 1, 1, 1, 0}, Shape{9, 72, 8, 0, 2, 1, 0}}) {
        // Only cases of the geometry for which the kernel was built can run.
        const int pad = KERNEL_H == 1 ? 0 : s.pad;
        if ((H + 2 * pad - (KERNEL_H - 1) * s.dilate - 1) / STRIDE_H + 1 != OH) continue;
        if (!PARTS && s.splits > 1) continue;
        Shape one = s;
        one.pad = pad;
        for (int order = 0; order < ORDERS; ++order) {
            const char* const when = set_order(order);
            const double error = run(one);
            const bool bad = !(error <= bound);
            std::printf(
                "%s %d x %d x %d x %d, %d channels, %d parts, %s: "
                "relative error %.2g\n",
                bad ? "FAILED" : "ok", s.n, s.in, H, W, s.out, s.splits, when, error);
            failed += bad;
            ++done;
        }
    }
    return failed == 0 && done > 0 ? 0 : 1;
}
