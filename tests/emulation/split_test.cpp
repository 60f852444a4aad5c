// SPDX-License-Identifier: MIT
// Runs the kernels of conv2d.wgmma_split and mma_split, emulated on the host, and compares them
// with a convolution in double. The test is built once per variant: WM, PRODUCTS, KERNEL_H,
// KERNEL_W, BLOCKED, CHANNEL_TAIL, Y_QUADS and PLANE are the kernel's defines. IN, X_H and X_W are
// the channels and sizes of the images, from which some of these defines follow.
#include "work_group.hpp"

#include <cstdio>
#include <random>

#define EPILOGUE(v, at)
#define EPILOGUE4(v, at)
#define EPILOGUE_ALIGNED 1
namespace weights {
#include "conv2d/split_pack.inc"
}
namespace product {
#include "conv2d/split.inc"
}

struct Shape {
    int n, out, stride, pad;
};

// Returns the relative L2 error.
static double run(const Shape& s) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const int oh = (X_H + 2 * s.pad - KERNEL_H) / s.stride + 1,
              ow = (X_W + 2 * s.pad - KERNEL_W) / s.stride + 1;
    const int taps = KERNEL_H * KERNEL_W, outputs = s.n * oh * ow, depth = IN * taps;
    std::vector<float> x(static_cast<std::size_t>(s.n * IN * PLANE)),
        w(static_cast<std::size_t>(s.out * depth)), bias(static_cast<std::size_t>(s.out)),
        y(static_cast<std::size_t>(s.out * outputs), NAN);
    for (auto* all : {&x, &w, &bias})
        for (float& v : *all) v = normal(random);

    const int rows = (s.out + 64 * WM - 1) / (64 * WM) * 64 * WM;
    const int block = BLOCKED ? 64 : 1, steps = BLOCKED ? (IN + 63) / 64 * taps : (depth + 63) / 64;
    const int packed_depth = BLOCKED ? steps * 64 : depth;
    const long table_at = rows * 4L, halves_at = table_at + steps * 64L * 8;
    std::vector<uint4> packed(
        static_cast<std::size_t>(halves_at / 16 + rows * steps * 8L * (PRODUCTS == 3 ? 2 : 1)));
    auto* const packed_at = reinterpret_cast<uchar*>(packed.data());
    run_kernel(rows + (steps * 64 + 255) / 256, 1, 256, [&] {
        weights::split_weights_pack(w.data(), 0, packed_at, 0, rows, s.out, IN, packed_depth, block,
                                    steps, 64 * WM, KERNEL_H, KERNEL_W, KERNEL_H, KERNEL_W,
                                    KERNEL_W, 0, 1, 0, 1, depth, taps, PLANE, X_W, 1, 1, table_at,
                                    halves_at);
    });
    const int tiles_m = rows / (64 * WM), tiles_n = (outputs + 127) / 128;
    const product::Images images{X_H, X_W, oh,       ow,       oh,    ow,    0, 0,
                                 1,   1,   s.stride, s.stride, s.pad, s.pad, 1, 1};
    run_kernel(tiles_m * tiles_n, 1, 256, [&] {
        product::split_product(x.data(), 0, packed_at, 0, bias.data(), 0, y.data(), 0, 1, outputs,
                               IN, s.out, images, steps, steps, tiles_m, tiles_n, table_at,
                               halves_at, 0);
    });

    double error = 0, size = 0;
    for (int i = 0; i < s.out * outputs; ++i) {
        const int ox = i % ow, oy = i / ow % oh, o = i / ow / oh % s.out, n = i / ow / oh / s.out;
        double exact = static_cast<double>(bias[static_cast<std::size_t>(o)]);
        for (int c = 0; c < IN; ++c)
            for (int k = 0; k < taps; ++k) {
                const int iy = oy * s.stride - s.pad + k / KERNEL_W,
                          ix = ox * s.stride - s.pad + k % KERNEL_W;
                if (iy < 0 || ix < 0 || iy >= X_H || ix >= X_W) continue;
                exact += static_cast<double>(
                             x[static_cast<std::size_t>((n * IN + c) * PLANE + iy * X_W + ix)]) *
                         static_cast<double>(w[static_cast<std::size_t>(o * depth + c * taps + k)]);
            }
        const double d = static_cast<double>(y[static_cast<std::size_t>(i)]) - exact;
        error += d * d;
        size += exact * exact;
    }
    return std::sqrt(error / size);
}

int main() {
    const double bound = PRODUCTS == 3 ? 1e-6 : 1e-3;
    int failed = 0, done = 0;
    // The cases have tiles that are not full, several tiles, and a stride.
    for (const Shape& s :
         {Shape{1, 5, 1, KERNEL_H / 2}, Shape{3, 136, 1, KERNEL_H / 2}, Shape{2, 70, 2, 0}}) {
        const int oh = (X_H + 2 * s.pad - KERNEL_H) / s.stride + 1,
                  ow = (X_W + 2 * s.pad - KERNEL_W) / s.stride + 1;
        if (Y_QUADS && oh * ow % 4 != 0) continue;
        for (int order = 0; order < ORDERS; ++order) {
            const char* const when = set_order(order);
            const double error = run(s);
            const bool bad = !(error <= bound);
            std::printf("%s %d x %d x %d x %d, %d channels, %s: relative error %.2g\n",
                        bad ? "FAILED" : "ok", s.n, IN, X_H, X_W, s.out, when, error);
            failed += bad;
            ++done;
        }
    }
    return failed == 0 && done > 0 ? 0 : 1;
}
