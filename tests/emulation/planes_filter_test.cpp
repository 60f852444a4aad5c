// SPDX-License-Identifier: MIT
// Runs the kernels of conv2d_backward_filter.wgmma_planes, emulated on the host, and compares them
// with a filter gradient in double. Channels have magnitudes of 1e-12 to 1e12. STAGES, NEAR, WM,
// BN, KERNEL_H, KERNEL_W, H, W, OH, OW, STRIDE_H and STRIDE_W are defines of the product.
#include "work_group.hpp"

#include <cstdio>
#include <random>

#define EPILOGUE(v, at)
#define KIND 1
#define PARTS 1
namespace product {
#include "conv2d/stored16_filter.inc"
}
#undef PARTS
#define PARTS 16
namespace around {
#include "conv2d/planes_filter.inc"
}

namespace {

struct Shape {
    int n, in, out, pad, splits;
};

/// An image with its channels' largest magnitudes and its halves, as the kernels make them.
struct Image {
    int images, channels, plane;
    std::vector<float> x;
    std::vector<uint> largest;
    std::vector<ushort> halves;

    Image(int n, int c, int size, std::mt19937& random) : images(n), channels(c), plane(size) {
        std::normal_distribution<float> normal;
        std::uniform_real_distribution<float> exponent(-12, 12);
        x.resize(static_cast<std::size_t>(n * c * size));
        std::vector<float> scales(static_cast<std::size_t>(c));
        for (float& scale : scales) scale = std::pow(10.0f, exponent(random));
        for (std::size_t i = 0; i < x.size(); ++i)
            x[i] = normal(random) * scales[i / static_cast<std::size_t>(size) % scales.size()];
        largest.assign(static_cast<std::size_t>(c * PARTS), 0xffffffff);
        halves.assign(x.size(), 0x7fff);
        run_kernel(PARTS, c, 256, [&] {
            around::filter_largest(x.data(), 0, largest.data(), 0, images, channels, plane);
        });
        const int pixels = n * size;
        run_kernel((pixels + 31) / 32, (c + 63) / 64, 256, [&] {
            around::filter_halves(x.data(), 0, largest.data(), 0, halves.data(), 0, channels, plane,
                                  pixels);
        });
    }
    double at(int image, int channel, int pixel) const {
        return x[static_cast<std::size_t>((image * channels + channel) * plane + pixel)];
    }
};

// Returns the largest error of an element, relative to the sum of its terms' magnitudes.
double run(const Shape& s) {
    std::mt19937 random(7);
    const int taps = KERNEL_H * KERNEL_W, pixels = s.n * OH * OW, steps = (pixels + 63) / 64;
    const Image x(s.n, s.in, H * W, random), dy(s.n, s.out, OH * OW, random);
    const int count = s.out * s.in * taps;
    std::vector<float> dweight(static_cast<std::size_t>(count), NAN),
        parts(static_cast<std::size_t>(count * s.splits), NAN);
    const int tiles_m = (s.out + 64 * WM - 1) / (64 * WM),
              tiles_n = ((s.in + 63) / 64 * taps + BN / 64 - 1) / (BN / 64);
    run_kernel(tiles_m * tiles_n * s.splits, 1, 256, [&] {
        product::stored16_filter(x.halves.data(), 0, dy.halves.data(), 0, parts.data(), 0, pixels,
                                 s.in, s.out, s.pad, s.pad, 1, 1, steps,
                                 (steps + s.splits - 1) / s.splits, tiles_m, tiles_n, count);
    });
    run_kernel((count + 31) / 32, 1, 256, [&] {
        around::filter_sum(parts.data(), 0, x.largest.data(), 0, dy.largest.data(), 0,
                           dweight.data(), 0, count, s.splits, taps, s.in);
    });
    double worst = 0;
    for (int i = 0; i < count; ++i) {
        const int k = i % taps, c = i / taps % s.in, o = i / taps / s.in;
        double exact = 0, size = 0;
        for (int p = 0; p < pixels; ++p) {
            const int ox = p % OW, oy = p / OW % OH, n = p / OW / OH;
            const int iy = oy * STRIDE_H - s.pad + k / KERNEL_W,
                      ix = ox * STRIDE_W - s.pad + k % KERNEL_W;
            if (iy < 0 || ix < 0 || iy >= H || ix >= W) continue;
            const double term = dy.at(n, o, oy * OW + ox) * x.at(n, c, iy * W + ix);
            exact += term;
            size += std::abs(term);
        }
        const double error =
            std::abs(static_cast<double>(dweight[static_cast<std::size_t>(i)]) - exact);
        worst = std::isfinite(error) ? std::max(worst, error / size) : INFINITY;
    }
    return worst;
}

}  // namespace

int main() {
    const double bound = 1.0 / 1024;  // each of two factors is rounded to 11 bits
    int failed = 0;
    for (const Shape& s : {Shape{1, 8, 8, 1, 1}, Shape{2, 72, 136, 1, 1}, Shape{5, 64, 24, 1, 4}}) {
        Shape one = s;
        if (KERNEL_H == 1) one.pad = 0;
        for (int order = 0; order < ORDERS; ++order) {
            const char* const when = set_order(order);
            const double error = run(one);
            const bool bad = !(error <= bound);
            std::printf("%s %d x %d x %d x %d, %d channels, %d parts, %s: error %.2g\n",
                        bad ? "FAILED" : "ok", s.n, s.in, H, W, s.out, s.splits, when, error);
            failed += bad;
        }
    }
    return failed == 0 ? 0 : 1;
}
