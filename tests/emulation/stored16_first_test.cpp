// SPDX-License-Identifier: MIT
// Runs the kernels of conv2d.wgmma_half_first and conv2d_backward_filter.wgmma_half_first, emulated
// on the host, and compares them with a convolution and a filter gradient in double. The test is
// built once per geometry and types. KIND, X_KIND, Y_KIND, STEPS, CHANNELS, KERNEL_H, KERNEL_W,
// X_H, X_W, OUT_H, OUT_W, STRIDE_H and STRIDE_W are defines of both kernels. Y_FOURS and PRODUCT_BN
// are for the first, WM and FILTER_BN for the second. ROOM is for the packing. PAD and DILATE are
// the padding and the dilation.
#include "work_group.hpp"

#include <cstdio>
#include <random>

#define EPILOGUE(v, at)
namespace weights {
#include "matrix/stored16_pack.inc"
}
#define BN PRODUCT_BN
namespace product {
#include "conv2d/stored16_first.inc"
}
#undef BN
#define BN FILTER_BN
namespace filter {
#include "conv2d/stored16_first_filter.inc"
}
namespace sum {
#include "conv2d/stored16_filter_sum.inc"
}

namespace {

constexpr int taps = KERNEL_H * KERNEL_W, depth = CHANNELS * taps;
using X = std::conditional_t<X_KIND == 0, float, ushort>;
using Y = std::conditional_t<Y_KIND == 0, float, ushort>;

template <class T>
T stored(float v, int kind) {
    return static_cast<T>(kind == 0   ? static_cast<double>(v)
                          : kind == 1 ? half_of(v)
                                      : bfloat_of(v));
}
double value(double stored, int kind) {
    return kind == 0 ? stored : static_cast<double>(float_of_kind(static_cast<uint>(stored), kind));
}
// Returns the value as a factor of a product: rounded to 11 or 8 significant bits.
double rounded(double v) {
    if (v == 0 || std::isnan(v)) return v;
    const int bits = (KIND == 1 ? 10 : 7) - std::ilogb(v);
    return std::ldexp(std::nearbyint(std::ldexp(v, bits)), -bits);
}

struct Example {
    int n, out, offset;
    std::vector<X> x;
    std::vector<double> factors;  // x as a product takes it
    std::mt19937 random{7};
    std::normal_distribution<float> normal;

    Example(int images, int channels, int front) : n(images), out(channels), offset(front) {
        // Elements in front of the data and behind it are NaN.
        x.assign(static_cast<std::size_t>(n * CHANNELS * X_H * X_W + offset + 8),
                 X_KIND == 0 ? static_cast<X>(NAN) : static_cast<X>(0x7fff));
        for (int i = 0; i < n * CHANNELS * X_H * X_W; ++i)
            x[static_cast<std::size_t>(i + offset)] = stored<X>(normal(random), X_KIND);
        for (const X v : x) factors.push_back(rounded(value(static_cast<double>(v), X_KIND)));
    }
    int pixels() const { return n * OUT_H * OUT_W; }
    // Returns column k of the patch of output pixel p, rounded. It is 0 outside the image.
    double patch(int p, int k) const {
        const int c = k / taps, ky = k % taps / KERNEL_W, kx = k % KERNEL_W;
        const int iy = p / OUT_W % OUT_H * STRIDE_H - PAD + ky * DILATE,
                  ix = p % OUT_W * STRIDE_W - PAD + kx * DILATE, image = p / OUT_W / OUT_H;
        if (iy < 0 || ix < 0 || iy >= X_H || ix >= X_W) return 0;
        const int at = ((image * CHANNELS + c) * X_H + iy) * X_W + ix + offset;
        return factors[static_cast<std::size_t>(at)];
    }

    // These return the relative L2 error.
    double forward() {
        std::vector<float> w(static_cast<std::size_t>(out * depth)),
            bias(static_cast<std::size_t>(out));
        for (float& v : w) v = normal(random);
        for (float& v : bias) v = normal(random);
        const int rows = (out + 63) / 64 * 64, tiles_n = (out + PRODUCT_BN - 1) / PRODUCT_BN;
        std::vector<uint4> packed(static_cast<std::size_t>(rows / 4 + rows * STEPS * 8));
        auto* const packed_at = reinterpret_cast<uchar*>(packed.data());
        run_kernel(rows, 1, 256, [&] {
            weights::stored16_pack(w.data(), 0, packed_at, 0, out, CHANNELS, depth, 1, STEPS,
                                   KERNEL_H, KERNEL_W, KERNEL_W, 0, 1, 0, 1, depth, taps,
                                   rows * 4L);
        });
        std::vector<Y> y(static_cast<std::size_t>(pixels() * out), stored<Y>(NAN, Y_KIND));
        run_kernel((pixels() + 127) / 128 * tiles_n, 1, 256, [&] {
            product::stored16_first(x.data(), static_cast<ulong>(offset), packed_at, 0, bias.data(),
                                    0, y.data(), 0, 1, pixels(), out, PAD, PAD, DILATE, DILATE,
                                    tiles_n, rows / 64, rows * 4L);
        });
        std::vector<double> w_factors;
        for (const float v : w) w_factors.push_back(rounded(static_cast<double>(v)));
        double error = 0, size = 0;
        for (int i = 0; i < pixels() * out; ++i) {
            const auto o = static_cast<std::size_t>(i % out);
            double exact = static_cast<double>(bias[o]);
            for (int k = 0; k < depth; ++k)
                exact += patch(i / out, k) * w_factors[o * depth + static_cast<std::size_t>(k)];
            const double d =
                value(static_cast<double>(y[static_cast<std::size_t>(i)]), Y_KIND) - exact;
            error += d * d;
            size += exact * exact;
        }
        return std::sqrt(error / size);
    }

    double backward(int splits) {
        const int steps = (pixels() + 63) / 64, tiles_m = (out + 64 * WM - 1) / (64 * WM);
        std::vector<ushort> dy(static_cast<std::size_t>(pixels() * out + offset + 8), 0x7fff);
        for (int i = 0; i < pixels() * out; ++i)
            dy[static_cast<std::size_t>(i + offset)] = stored<ushort>(normal(random), KIND);
        std::vector<float> parts(static_cast<std::size_t>(splits * out * depth), NAN),
            dweight(static_cast<std::size_t>(out * depth), NAN);
        run_kernel(tiles_m * splits, 1, 256, [&] {
            filter::stored16_first_filter(
                x.data(), static_cast<ulong>(offset), dy.data(), static_cast<ulong>(offset),
                parts.data(), 0, pixels(), out, PAD, PAD, DILATE, DILATE, steps,
                (steps + splits - 1) / splits, tiles_m, static_cast<long>(out) * depth);
        });
        run_kernel((out * depth + 31) / 32, 1, 256, [&] {
            sum::stored16_filter_sum(parts.data(), 0, dweight.data(), 0, out * depth, splits, 1,
                                     depth);
        });
        double error = 0, size = 0;
        for (int i = 0; i < out * depth; ++i) {
            double exact = 0;
            for (int p = 0; p < pixels(); ++p)
                exact += patch(p, i % depth) *
                         value(static_cast<double>(
                                   dy[static_cast<std::size_t>(p * out + i / depth + offset)]),
                               KIND);
            const double d = static_cast<double>(dweight[static_cast<std::size_t>(i)]) - exact;
            error += d * d;
            size += exact * exact;
        }
        return std::sqrt(error / size);
    }
};

}  // namespace

int main() {
    // The error of a stored result is at most half a unit in its last place. The error of a float
    // sum is a few units in its last place.
    const double rounding[] = {0, 0x1p-11, 0x1p-8};
    int failed = 0;
    const auto report = [&](const char* what, double error, double bound) {
        const bool bad = !(error <= bound);
        std::printf("%s %s: relative error %.2g\n", bad ? "FAILED" : "ok", what, error);
        failed += bad;
    };
    for (int order = 0; order < ORDERS; ++order) {
        const char* const when = set_order(order);
        const int out = Y_FOURS ? 72 : 21;
        report("forward", Example(2, out, 0).forward(), rounding[Y_KIND] + 3e-6);
        report("forward, odd start", Example(1, Y_FOURS ? 8 : 7, 1).forward(),
               rounding[Y_KIND] + 3e-6);
        report("filter", Example(2, 72, 0).backward(3), 3e-6);
        report("filter, later start", Example(5, 8, 8).backward(1), 3e-6);
    }
    return failed == 0 ? 0 : 1;
}
