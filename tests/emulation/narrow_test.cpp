// SPDX-License-Identifier: MIT
// Runs the kernels of conv2d.wgmma_narrow, emulated on the host, and compares them with a
// convolution in double. The test is built once for each number of rows per step: WM, PRODUCTS,
// STAGES, KERNEL_H (steps), NARROW and Y_QUADS are the kernel's defines, and SIDE is the side of
// the convolution's kernel.
#include "work_group.hpp"

#include <cstdio>
#include <random>

#define KERNEL_W 1
#define EPILOGUE(v, at)
#define EPILOGUE4(v, at)
#define EPILOGUE_ALIGNED 1
namespace images {
#include "conv2d/narrow_pack.inc"
}
namespace weights {
#include "conv2d/split_pack.inc"
}
namespace product {
#include "conv2d/planes.inc"
}

struct Shape {
    int n, in, out, h, w, stride, pad;
};

// The data that is multiplied, with magnitudes from 1e-20 to 1e20. They differ by image (each image
// has its own power of two), are the same for all images and for all weights, differ by output
// channel of the weights, or differ by value within an image.
enum class Data { images, small_x, large_x, channels_out, x_values };

// Returns the largest error of an element, relative to the sum of its terms' magnitudes. If one
// image has all magnitudes, its smaller values lose all their bits. Then it returns the relative L2
// error of the whole result.
static double run(const Shape& s, Data data) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const int oh = (s.h + 2 * s.pad - SIDE) / s.stride + 1;
    const int ow = (s.w + 2 * s.pad - SIDE) / s.stride + 1;
    const int taps = SIDE * SIDE, plane = s.h * s.w, outputs = s.n * oh * ow;
    std::vector<float> x(static_cast<std::size_t>(s.n * s.in * plane)),
        w(static_cast<std::size_t>(s.out * s.in * taps));
    std::uniform_real_distribution<double> any(-20, 20);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double decade = data == Data::images     ? (i < x.size() / 2 ? -20 : 20)
                              : data == Data::small_x  ? -20
                              : data == Data::large_x  ? 20
                              : data == Data::x_values ? any(random)
                                                       : 0;
        x[i] = static_cast<float>(static_cast<double>(normal(random)) * std::pow(10.0, decade));
    }
    for (std::size_t i = 0; i < w.size(); ++i) {
        const int channel = static_cast<int>(i) / (s.in * taps);
        const double decade = data == Data::small_x        ? 20
                              : data == Data::large_x      ? -20
                              : data == Data::channels_out ? channel * 13 % 41 - 20
                                                           : 0;
        w[i] = static_cast<float>(static_cast<double>(normal(random)) * std::pow(10.0, decade));
    }
    std::vector<float> y(static_cast<std::size_t>(s.out * outputs), NAN),
        bias(static_cast<std::size_t>(s.out), 0.0f);

    constexpr int steps = KERNEL_H, planes_each = PRODUCTS == 3 ? 2 : 1;
    const int h = (oh - 1) * s.stride + steps * NARROW;
    const int pixels_w = ((ow - 1) * s.stride + 16 / NARROW + 1) / 2 * 2;
    const int pixels = s.n * h * pixels_w, rows = (s.out + 64 * WM - 1) / (64 * WM) * 64 * WM;
    std::vector<uint4> planes(
        static_cast<std::size_t>((pixels * 8 * planes_each + s.n * (4 + 16 * 4)) / 16 + 1));
    auto* const planes_at = reinterpret_cast<uchar*>(planes.data());
    auto* const largest = reinterpret_cast<uint*>(planes_at + pixels * 8 * planes_each + s.n * 4);
    run_kernel(16, s.n, 256,
               [&] { images::narrow_largest(x.data(), 0, largest, 0, s.in * plane); });
    run_kernel((h * pixels_w + 255) / 256, s.n, 256, [&] {
        images::narrow_pack(x.data(), 0, planes_at, 0, s.in, s.h, s.w, s.pad, s.pad, h, pixels_w);
    });
    const long table_at = rows * 4L, halves_at = table_at + steps * 64L * 8;
    std::vector<uint4> packed(
        static_cast<std::size_t>(halves_at / 16 + rows * steps * 8L * planes_each));
    auto* const packed_at = reinterpret_cast<uchar*>(packed.data());
    run_kernel(rows + (steps * 64 + 255) / 256, 1, 256, [&] {
        weights::split_weights_pack(w.data(), 0, packed_at, 0, rows, s.out, s.in, steps * 64, 4,
                                    steps, 64 * WM, steps * NARROW, 16 / NARROW, SIDE, SIDE, SIDE,
                                    0, 1, 0, 1, static_cast<long>(s.in) * taps, taps, plane, s.w, 1,
                                    1, table_at, halves_at);
    });
    const int tiles_m = rows / (64 * WM), tiles_n = (outputs + 127) / 128;
    const product::Images images{h, pixels_w, oh,       ow,       oh, ow, 0,      0,
                                 1, 1,        s.stride, s.stride, 0,  0,  NARROW, 1};
    run_kernel(tiles_m * tiles_n, 1, 256, [&] {
        product::planes_product(planes_at, 0, packed_at, 0, bias.data(), 0, y.data(), 0, 0, outputs,
                                pixels, s.out, images, 1, steps, steps, tiles_m, tiles_n, 0,
                                halves_at, 0);
    });

    double worst = 0, error_squares = 0, squares = 0;
    for (int i = 0; i < s.n * s.out * oh * ow; ++i) {
        const int ox = i % ow, oy = i / ow % oh, o = i / ow / oh % s.out, n = i / ow / oh / s.out;
        double exact = 0, size = 0;
        for (int c = 0; c < s.in; ++c)
            for (int k = 0; k < taps; ++k) {
                const int iy = oy * s.stride - s.pad + k / SIDE,
                          ix = ox * s.stride - s.pad + k % SIDE;
                if (iy < 0 || ix < 0 || iy >= s.h || ix >= s.w) continue;
                const double term =
                    static_cast<double>(
                        x[static_cast<std::size_t>((n * s.in + c) * plane + iy * s.w + ix)]) *
                    static_cast<double>(w[static_cast<std::size_t>((o * s.in + c) * taps + k)]);
                exact += term;
                size += std::abs(term);
            }
        const double error = std::abs(static_cast<double>(y[static_cast<std::size_t>(i)]) - exact);
        if (!(error <= size * worst)) worst = size > 0 ? error / size : error;
        error_squares += error * error;
        squares += exact * exact;
    }
    return data == Data::x_values ? std::sqrt(error_squares / squares) : worst;
}

int main() {
    // Relative to the sum of the terms' magnitudes, there are a few roundings of 2^-24, or of
    // 2^-11.
    const double bound = PRODUCTS == 3 ? 1e-6 : 1e-3;
    int failed = 0;
    // The cases have tiles that are not full, one and four channels, borders on all sides and none,
    // and an odd width.
    for (const Shape& s :
         {Shape{2, 3, 70, 19, 23, 2, SIDE / 2}, Shape{2, 1, 5, SIDE + 6, SIDE, 4, 0},
          Shape{4, 4, 64, 16, 16, 4, 2}, Shape{2, 2, 3, 13, 15, 2, SIDE - 1}}) {
        const int oh = (s.h + 2 * s.pad - SIDE) / s.stride + 1,
                  ow = (s.w + 2 * s.pad - SIDE) / s.stride + 1;
        if (Y_QUADS && oh * ow % 4 != 0) continue;
        for (int order = 0; order < ORDERS; ++order) {
            const char* const when = set_order(order);
            for (const Data data :
                 {Data::images, Data::small_x, Data::large_x, Data::channels_out, Data::x_values}) {
                if (data != Data::images && s.h * s.w * s.out > 3000) continue;  // takes long
                // One kind of data is enough to try the orders.
                if (order > 0 && data != Data::images) continue;
                const double error = run(s, data);
                const bool bad = !(error <= bound);
                std::printf("%s %d x %d x %d x %d, %d channels, data %d, %s: error %.2g\n",
                            bad ? "FAILED" : "ok", s.n, s.in, s.h, s.w, s.out,
                            static_cast<int>(data), when, error);
                failed += bad;
            }
        }
    }
    return failed == 0 ? 0 : 1;
}
