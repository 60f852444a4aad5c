// SPDX-License-Identifier: MIT
// Runs the kernels of conv2d.wgmma_half, emulated on the host, and compares them with a convolution
// in double of the same rounded factors. The test is built once per tile and types: KIND, STAGES,
// NEAR, MG, BN, Y_KIND, KERNEL_H, KERNEL_W, DIRECT, CHANNEL_TAIL, Y_FOURS and ROOM are the kernels'
// defines, and ADD_KIND is the storage type of what the epilogue adds.
#include "work_group.hpp"

#include <cstdio>
#include <random>

namespace {

constexpr double rounding[] = {0x1p-24, 0x1p-11, 0x1p-8};

struct Stored {
    int kind;
    std::vector<float> floats;
    std::vector<ushort> bits;
    Stored(int kind_, std::size_t count) : kind(kind_) {
        // What is not written stays NaN. There may be something in front.
        floats.assign(kind == 0 ? count + 8 : 0, NAN);
        bits.assign(kind == 0 ? 0 : count + 8, 0x7fff);
    }
    float get(std::size_t i) const { return kind == 0 ? floats[i] : float_of_kind(bits[i], kind); }
    void set(std::size_t i, float v) {
        if (kind == 0)
            floats[i] = v;
        else
            bits[i] = static_cast<ushort>(kind == 1 ? half_of(v) : bfloat_of(v));
    }
    void* data() {
        return kind == 0 ? static_cast<void*>(floats.data()) : static_cast<void*>(bits.data());
    }
};

const Stored* added;
std::size_t added_at;
float added_to(float v, std::size_t at) {
    return std::max(v + added->get(added_at + at), 0.0f);
}

}  // namespace

#if Y_FOURS
#define EPILOGUE(v, at)                                                          \
    if (added) v = float4 {                                                      \
            added_to(v.x, at), added_to(v.y, (at) + 1), added_to(v.z, (at) + 2), \
                added_to(v.w, (at) + 3)                                          \
        }
#else
#define EPILOGUE(v, at) \
    if (added) v = added_to(v, at)
#endif
namespace weights {
#include "matrix/stored16_pack.inc"
}
namespace product {
#include "matrix/stored16.inc"
}
#if Y_FOURS
#define LANES 4
#else
#define LANES 1
#endif
namespace sum {
#include "matrix/stored16_sum.inc"
}

namespace {

struct Shape {
    int n, in, out, h, w, stride, pad, dilate;
    bool phase;       // rows and columns of y are written with gaps, by a data gradient's taps
    int splits;       // parts of K
    bool epilogue;    // an operand is added, then ReLU
    float magnitude;  // of the weights
    int offset;       // elements in front of x, y and the operand
};

// Returns the value rounded to 11 or 8 significant bits, as packed weights are, whatever their
// magnitude.
double rounded(double v) {
    if (v == 0) return 0;
    const int bits = (KIND == 1 ? 10 : 7) - std::ilogb(v);
    return std::ldexp(std::nearbyint(std::ldexp(v, bits)), -bits);
}

// Returns the relative L2 error, or infinity if the kernels wrote too little or outside the result.
double run(const Shape& s) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const int taps = KERNEL_H * KERNEL_W, plane = s.h * s.w;
    const int oh = (s.h + 2 * s.pad - (KERNEL_H - 1) * s.dilate - 1) / s.stride + 1;
    const int ow = (s.w + 2 * s.pad - (KERNEL_W - 1) * s.dilate - 1) / s.stride + 1;
    const int row_step = s.phase ? 2 : 1, column_step = s.phase ? 3 : 1;
    const int row0 = s.phase ? 1 : 0, column0 = s.phase ? 2 : 0;
    const int yh = oh * row_step + row0, yw = ow * column_step + column0;
    const int pixels = s.n * oh * ow, steps = (s.in + 63) / 64 * taps;
    const auto at = [&](int i) { return static_cast<std::size_t>(i + s.offset); };

    Stored x(KIND, static_cast<std::size_t>(s.n * plane * s.in));
    for (int i = 0; i < s.n * plane * s.in; ++i) x.set(at(i), normal(random));
    std::vector<float> w(static_cast<std::size_t>(s.out * s.in * taps)),
        bias(static_cast<std::size_t>(s.out));
    for (float& v : w) v = normal(random) * s.magnitude;
    std::vector<double> factors;
    for (const float v : w) factors.push_back(rounded(static_cast<double>(v)));
    for (float& v : bias) v = normal(random) * s.magnitude;
    const int y_count = s.n * yh * yw * s.out;
    Stored y(Y_KIND, static_cast<std::size_t>(y_count)),
        add(ADD_KIND, static_cast<std::size_t>(y_count));
    for (int i = 0; i < y_count; ++i) add.set(at(i), normal(random) * s.magnitude);
    added_at = static_cast<std::size_t>(s.offset);

    const int rows = (s.out + 63) / 64 * 64;
    std::vector<uint4> packed(static_cast<std::size_t>(rows / 4 + rows * steps * 8));
    auto* const packed_at = reinterpret_cast<uchar*>(packed.data());
    // A data gradient swaps input and output channels of the weights, and reverses their taps.
    const long weight_out = s.phase ? taps : static_cast<long>(s.in) * taps;
    const long weight_in = s.phase ? static_cast<long>(s.out) * taps : taps;
    const int h0 = s.phase ? KERNEL_H - 1 : 0, w0 = s.phase ? KERNEL_W - 1 : 0,
              step = s.phase ? -1 : 1;
    run_kernel(rows, 1, 256, [&] {
        weights::stored16_pack(w.data(), 0, packed_at, 0, s.out, s.in, steps * 64, 64, steps,
                               KERNEL_H, KERNEL_W, KERNEL_W, h0, step, w0, step, weight_out,
                               weight_in, rows * 4L);
    });
    const int tiles_m = (pixels + 128 * MG - 1) / (128 * MG), tiles_n = (s.out + BN - 1) / BN;
    const bool split = s.splits > 1;
    std::vector<float> parts(static_cast<std::size_t>(split ? s.splits * y_count : 0), NAN);
    added = s.epilogue && !split ? &add : nullptr;
    if (split && Y_KIND != 0) std::abort();
    using Y = std::conditional_t<Y_KIND == 0, float, ushort>;
    Y* const results = split ? reinterpret_cast<Y*>(parts.data()) : static_cast<Y*>(y.data());
    const product::Images images{s.h,   s.w,     yh,       yw,          oh,       ow,
                                 row0,  column0, row_step, column_step, s.stride, s.stride,
                                 s.pad, s.pad,   s.dilate, s.dilate};
    run_kernel(tiles_m * tiles_n * s.splits, 1, 256, [&] {
        product::stored16_product(x.bits.data(), static_cast<ulong>(s.offset), packed_at, 0,
                                  bias.data(), 0, results, split ? 0 : static_cast<ulong>(s.offset),
                                  !split, pixels, s.in, s.out, images, steps,
                                  (steps + s.splits - 1) / s.splits, tiles_m, tiles_n, rows / 64,
                                  rows * 4L, split ? y_count : 0);
    });
    if (split) {
        added = s.epilogue ? &add : nullptr;
        run_kernel((y_count / LANES + 255) / 256, 1, 256, [&] {
            sum::stored16_sum(parts.data(), 0, bias.data(), 0, static_cast<Y*>(y.data()),
                              static_cast<ulong>(s.offset), y_count, s.splits, 1, s.out);
        });
    }

    double error = 0, size = 0;
    for (int i = 0; i < y_count; ++i) {
        const int o = i % s.out, column = i / s.out % yw, row = i / s.out / yw % yh,
                  n = i / s.out / yw / yh;
        const float made = y.get(at(i));
        if (row < row0 || column < column0 || (row - row0) % row_step != 0 ||
            (column - column0) % column_step != 0) {
            if (!std::isnan(made)) return INFINITY;
            continue;
        }
        const int oy = (row - row0) / row_step, ox = (column - column0) / column_step;
        double exact = static_cast<double>(bias[static_cast<std::size_t>(o)]);
        for (int c = 0; c < s.in; ++c)
            for (int k = 0; k < taps; ++k) {
                const int iy = oy * s.stride - s.pad + k / KERNEL_W * s.dilate,
                          ix = ox * s.stride - s.pad + k % KERNEL_W * s.dilate;
                if (iy < 0 || ix < 0 || iy >= s.h || ix >= s.w) continue;
                const long from = o * weight_out + c * weight_in +
                                  (h0 + k / KERNEL_W * step) * KERNEL_W + w0 + k % KERNEL_W * step;
                exact += static_cast<double>(x.get(at(((n * s.h + iy) * s.w + ix) * s.in + c))) *
                         factors[static_cast<std::size_t>(from)];
            }
        if (s.epilogue) exact = std::max(exact + static_cast<double>(add.get(at(i))), 0.0);
        const double d = static_cast<double>(made) - exact;
        error += d * d;
        size += exact * exact;
    }
    return std::sqrt(error / size);
}

}  // namespace

int main() {
    // The error of a rounded result is at most half a unit in its last place. The error of a float
    // sum is a few units in its last place.
    const double bound = rounding[Y_KIND] + 3e-6;
    const int p = DIRECT ? 0 : KERNEL_H / 2;
    int failed = 0, done = 0;
    for (const Shape& s :
         {Shape{2, 8, 4, 7, 5, 1, p, 1, false, 1, false, 1, 0},        // no tile is filled
          Shape{1, 136, 72, 12, 13, 1, p, 1, false, 1, true, 1, 0},    // several blocks and tiles
          Shape{2, 64, 260, 9, 16, 1, p, 1, false, 1, true, 0.1f, 8},  // behind something else
          Shape{3, 72, 5, 9, 7, 2, 1, 2, false, 1, true, 1, 0},        // odd channels
          Shape{2, 64, 24, 6, 7, 1, 1, 1, true, 1, true, 1, 0},        // a phase of a data gradient
          Shape{1, 320, 66, 11, 6, 1, p, 1, false, 1, false, 1e-8f, 0},  // weights of 1e-8
          Shape{1, 320, 136, 11, 6, 1, p, 1, false, 3, true, 1, 0},      // parts of K
          Shape{1, 192, 67, 4, 5, 1, p, 1, false, 7, false, 1, 8}}) {
        if (DIRECT && (s.stride != 1 || s.pad != 0 || s.phase)) continue;
        if ((s.in % 64 != 0) != CHANNEL_TAIL || (s.out % 4 == 0) != Y_FOURS) continue;
        if (s.splits > 1 && Y_KIND != 0) continue;
        // The results have about the size of the weights, 1e-8. Halves cannot hold that.
        if (s.magnitude < 1e-6f && Y_KIND == 1) continue;
        for (int order = 0; order < ORDERS; ++order) {
            const char* const when = set_order(order);
            const double error = run(s);
            const bool bad = !(error <= bound);
            std::printf(
                "%s %d x %d x %d x %d, %d channels, %d parts, %s: "
                "relative error %.2g\n",
                bad ? "FAILED" : "ok", s.n, s.in, s.h, s.w, s.out, s.splits, when, error);
            failed += bad;
            ++done;
        }
    }
    return failed == 0 && done > 0 ? 0 : 1;
}
