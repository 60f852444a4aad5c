// SPDX-License-Identifier: MIT
// Runs the kernels of conv2d.wgmma_window, emulated on the host, and compares them with a
// convolution in double. The test is built once per variant: KERNEL_H, KERNEL_W, CHANNELS, S,
// PRODUCTS, Y_KIND, Y_LAST, Y_FOURS and Y_PAIRS are the kernel's defines.
#include "work_group.hpp"

#include <cstdio>
#include <random>

#define WORKERS 4
#define C8 ((CHANNELS * S * S + 7) / 8)
#define SIDE_H ((KERNEL_H + S - 1) / S)
#define SIDE_W ((KERNEL_W + S - 1) / S)
#define EPILOGUE(v, at)
namespace weights {
#include "conv2d/window_pack.inc"
}
namespace product {
#include "conv2d/window.inc"
}

namespace {

using Y = std::conditional_t<Y_KIND == 0, float, ushort>;
constexpr int steps = (C8 * SIDE_H * SIDE_W + 7) / 8, planes_each = PRODUCTS == 3 ? 2 : 1;

struct Shape {
    int n, out, h, w, pad, groups;
};

// Returns the largest error of an element, relative to the sum of its terms' magnitudes.
double run(const Shape& s) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const int oh = (s.h + 2 * s.pad - KERNEL_H) / S + 1, ow = (s.w + 2 * s.pad - KERNEL_W) / S + 1;
    constexpr int taps = KERNEL_H * KERNEL_W;
    const int plane = s.h * s.w, outputs = s.n * oh * ow;
    // Elements in front of the data and behind it are NaN.
    std::vector<float> x(static_cast<std::size_t>(s.n * CHANNELS * plane + 6), NAN),
        w(static_cast<std::size_t>(s.out * CHANNELS * taps)), bias(static_cast<std::size_t>(s.out));
    // Images have very different magnitudes, unless the result is stored in halves, which cannot
    // hold them.
    const int size = Y_KIND == 1 ? 0 : 40;
    for (int i = 0; i < s.n * CHANNELS * plane; ++i)
        x[static_cast<std::size_t>(i + 3)] =
            std::ldexp(normal(random), i < s.n * CHANNELS * plane / 2 ? -size : size);
    for (float& v : w) v = normal(random);
    for (float& v : bias) v = normal(random) * 1e-3F;
    std::vector<Y> y(static_cast<std::size_t>(s.out * outputs), Y_KIND == 0 ? Y(NAN) : Y(0x7fff));

    const int rows = (s.out + 63) / 64 * 64;
    const long planes_at = rows * 4L;
    std::vector<uint4> packed(
        static_cast<std::size_t>((planes_at + rows * steps * 128L * planes_each) / 16));
    auto* const packed_at = reinterpret_cast<uchar*>(packed.data());
    run_kernel(rows, 1, 256, [&] {
        weights::window_pack(w.data(), 0, packed_at, 0, CHANNELS, s.out, planes_at);
    });
    const int tiles_y = (oh + 7) / 8, tiles_x = (ow + 7) / 8;
    run_kernel(
        s.groups, rows / 64, WORKERS * 128,
        [&] {
            product::window_product(x.data(), 3, packed_at, 0, bias.data(), 0, y.data(), 0, 1,
                                    CHANNELS, s.out, s.h, s.w, oh, ow, s.pad, s.pad, tiles_y,
                                    tiles_x, s.n * tiles_y * tiles_x, planes_at);
        },
        128);

    double worst = 0;
    for (int i = 0; i < s.n * s.out * oh * ow; ++i) {
        const int ox = i % ow, oy = i / ow % oh, o = i / ow / oh % s.out, n = i / ow / oh / s.out;
        double exact = bias[static_cast<std::size_t>(o)], magnitudes = std::abs(exact);
        for (int c = 0; c < CHANNELS; ++c)
            for (int k = 0; k < taps; ++k) {
                const int iy = oy * S - s.pad + k / KERNEL_W, ix = ox * S - s.pad + k % KERNEL_W;
                if (iy < 0 || ix < 0 || iy >= s.h || ix >= s.w) continue;
                const auto at =
                    static_cast<std::size_t>(3 + (n * CHANNELS + c) * plane + iy * s.w + ix);
                const double term =
                    static_cast<double>(x[at]) *
                    static_cast<double>(w[static_cast<std::size_t>((o * CHANNELS + c) * taps + k)]);
                exact += term;
                magnitudes += std::abs(term);
            }
        const auto at =
            static_cast<std::size_t>(Y_LAST ? ((n * oh + oy) * ow + ox) * s.out + o : i);
        const double found =
            Y_KIND == 0 ? static_cast<double>(y[at])
                        : static_cast<double>(float_of_kind(static_cast<uint>(y[at]), Y_KIND));
        const double error = std::abs(found - exact);
        if (!(error <= magnitudes * worst)) worst = magnitudes > 0 ? error / magnitudes : error;
    }
    return worst;
}

}  // namespace

int main() {
    // There are a few roundings of 2^-24, or of 2^-11, and the rounding of the stored result.
    const double bound = Y_KIND == 2 ? 6e-3 : Y_KIND == 1 || PRODUCTS == 1 ? 1.5e-3 : 1e-6;
    int failed = 0;
    // The cases have windows that are not full, several windows per worker, fewer windows than
    // workers, and more than 64 channels.
    for (const Shape& s : {Shape{2, 72, 19 + KERNEL_H, 23 + KERNEL_W, KERNEL_H / 2, 2},
                           Shape{1, 8, KERNEL_H, KERNEL_W + S, 0, 1},
                           Shape{3, 64, 16 * S, 16 * S, KERNEL_H - 1, 1}}) {
        const int ow = (s.w + 2 * s.pad - KERNEL_W) / S + 1;
        if (!Y_LAST && Y_PAIRS && ow % 2 != 0) continue;
        const double error = run(s);
        const bool bad = !(error <= bound);
        std::printf("%s %d x %d x %d, %d channels: error %.2g\n", bad ? "FAILED" : "ok", s.n, s.h,
                    s.w, s.out, error);
        failed += bad;
    }
    return failed == 0 ? 0 : 1;
}
