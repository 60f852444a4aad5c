// SPDX-License-Identifier: MIT
// Runs the kernels of conv2d.wgmma_planes, emulated on the host, and compares them with a
// convolution in double. No OpenCL implementation on a CPU can run these kernels, but this test
// runs everywhere. It is built once per tile and precision: WM, PRODUCTS, STAGES, KERNEL_H,
// KERNEL_W and Y_QUADS are the kernel's defines.
#include "work_group.hpp"

#include <cstdio>
#include <random>

// The epilogue adds a residual, and then sets negative values to 0. The library's macros would do
// the same.
static std::vector<float> residual;
static float relu(float v) {
    return v < 0 ? 0.0f : v;
}
#define EPILOGUE(v, at) v = relu(v + residual[at])
#define EPILOGUE4(v, at)                                                                           \
    v = {relu(v.x + residual[at]), relu(v.y + residual[(at) + 1]), relu(v.z + residual[(at) + 2]), \
         relu(v.w + residual[(at) + 3])}
#define EPILOGUE_ALIGNED 1
namespace images {
#include "conv2d/planes_pack.inc"
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

// The data that is multiplied: normal values, or magnitudes from 1e-20 to 1e20. The magnitudes are
// the same for all values of x or of w, or they differ by value, image, input channel or output
// channel.
enum class Data { normal, small_x, large_x, x_values, w_values, images, channels_in, channels_out };
constexpr Data all_data[] = {Data::normal,   Data::small_x, Data::large_x,     Data::x_values,
                             Data::w_values, Data::images,  Data::channels_in, Data::channels_out};

// Returns the relative L2 error for normal values. For other data, returns the root mean square of
// the elements' errors, each relative to the sum of its terms' magnitudes. The L2 error is also
// used if weights differ by value and there is a border. There an element may have only taps that
// are far smaller than the largest weight of its channel, which decides the scale.
static double run(const Shape& s, Data data) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const int oh = (s.h + 2 * s.pad - KERNEL_H) / s.stride + 1;
    const int ow = (s.w + 2 * s.pad - KERNEL_W) / s.stride + 1;
    const int taps = KERNEL_H * KERNEL_W, plane = s.h * s.w, pixels = s.n * plane,
              outputs = s.n * oh * ow;
    std::vector<float> x(static_cast<std::size_t>(s.n * s.in * plane)),
        w(static_cast<std::size_t>(s.out * s.in * taps));
    for (float& v : x) v = normal(random);
    for (float& v : w) v = normal(random);
    const auto scale = [](std::vector<float>& values, auto&& decade) {
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(static_cast<double>(values[i]) *
                                           std::pow(10.0, decade(static_cast<int>(i))));
    };
    // Exponents from -20 to 20, in steps of 13 that wrap around.
    const auto spread = [](int i) { return i * 13 % 41 - 20; };
    std::uniform_real_distribution<double> any(-20, 20);
    if (data == Data::small_x || data == Data::large_x) {
        const int sign = data == Data::small_x ? -1 : 1;
        scale(x, [&](int) { return 20 * sign; });
        scale(w, [&](int) { return -20 * sign; });
    }
    if (data == Data::x_values) scale(x, [&](int) { return any(random); });
    if (data == Data::w_values) scale(w, [&](int) { return any(random); });
    if (data == Data::images) scale(x, [&](int i) { return spread(i / (s.in * plane)); });
    if (data == Data::channels_in) scale(x, [&](int i) { return spread(i / plane % s.in); });
    if (data == Data::channels_out) scale(w, [&](int i) { return spread(i / (s.in * taps)); });
    std::vector<float> y(static_cast<std::size_t>(s.out * outputs), NAN),
        bias(static_cast<std::size_t>(s.out));
    residual.resize(y.size());
    for (float& v : bias) v = data == Data::normal ? normal(random) : 0.0f;
    for (float& v : residual) v = data == Data::normal ? normal(random) : 0.0f;

    const int blocks = (s.in + 63) / 64, steps = blocks * taps,
              rows = (s.out + 64 * WM - 1) / (64 * WM) * 64 * WM;
    constexpr int planes_each = PRODUCTS == 3 ? 2 : 1;
    std::vector<uint4> planes(static_cast<std::size_t>(blocks * pixels * (8 * planes_each + 1)));
    auto* const planes_at = reinterpret_cast<uchar*>(planes.data());
    run_kernel((pixels + 31) / 32, blocks, 256,
               [&] { images::planes_pack(x.data(), 0, planes_at, 0, s.in, plane, pixels); });
    const long table_at = rows * 4L, halves_at = table_at + steps * 64L * 8;
    std::vector<uint4> packed(
        static_cast<std::size_t>(halves_at / 16 + rows * steps * 8L * planes_each));
    auto* const packed_at = reinterpret_cast<uchar*>(packed.data());
    run_kernel(rows + (steps * 64 + 255) / 256, 1, 256, [&] {
        weights::split_weights_pack(w.data(), 0, packed_at, 0, rows, s.out, s.in, steps * 64, 64,
                                    steps, 64 * WM, KERNEL_H, KERNEL_W, KERNEL_H, KERNEL_W,
                                    KERNEL_W, 0, 1, 0, 1, static_cast<long>(s.in) * taps, taps,
                                    plane, s.w, 1, 1, table_at, halves_at);
    });
    const int tiles_m = rows / (64 * WM), tiles_n = (outputs + 127) / 128;
    // The columns of tiles are computed in two launches if there are several.
    const int ends[] = {0, tiles_n / 2, tiles_n};
    for (int launch = 0; launch < 2; ++launch) {
        const product::Images images{s.h, s.w, oh,       ow,       oh,    ow,    0, 0,
                                     1,   1,   s.stride, s.stride, s.pad, s.pad, 1, 1};
        const int tile0 = ends[launch], columns = ends[launch + 1] - tile0;
        if (columns > 0)
            run_kernel(tiles_m * columns, 1, 256, [&] {
                product::planes_product(planes_at, 0, packed_at, 0, bias.data(), 0, y.data(), 0, 1,
                                        outputs, pixels, s.out, images, blocks, steps, steps,
                                        tiles_m, columns, tile0, halves_at, 0);
            });
    }

    double error = 0, size = 0, squares = 0;
    int count = 0;
    for (int i = 0; i < s.n * s.out * oh * ow; ++i) {
        const int ox = i % ow, oy = i / ow % oh, o = i / ow / oh % s.out, n = i / ow / oh / s.out;
        double exact = static_cast<double>(bias[static_cast<std::size_t>(o)]) +
                       static_cast<double>(residual[static_cast<std::size_t>(i)]);
        double terms = 0;
        for (int c = 0; c < s.in; ++c)
            for (int k = 0; k < taps; ++k) {
                const int iy = oy * s.stride - s.pad + k / KERNEL_W,
                          ix = ox * s.stride - s.pad + k % KERNEL_W;
                if (iy < 0 || ix < 0 || iy >= s.h || ix >= s.w) continue;
                const double term =
                    static_cast<double>(
                        x[static_cast<std::size_t>((n * s.in + c) * plane + iy * s.w + ix)]) *
                    static_cast<double>(w[static_cast<std::size_t>((o * s.in + c) * taps + k)]);
                exact += term;
                terms += std::abs(term);
            }
        exact = std::max(exact, 0.0);
        const double d = static_cast<double>(y[static_cast<std::size_t>(i)]) - exact;
        error += d * d;
        size += exact * exact;
        if (terms == 0 && d == 0) continue;
        squares += d / terms * (d / terms);
        ++count;
    }
    if (data == Data::normal || (data == Data::w_values && s.pad > 0))
        return std::sqrt(error / size);
    return std::sqrt(squares / std::max(count, 1));
}

int main() {
    const double bound = PRODUCTS == 3 ? 1e-6 : 1e-3;
    int failed = 0;
    // The cases have tiles that are not full, several blocks of channels and tiles, a stride, a
    // single pixel, and planes of a multiple of four pixels.
    for (const Shape& s :
         {Shape{2, 3, 4, 7, 5, 1, KERNEL_H / 2}, Shape{1, 130, 70, 12, 12, 1, KERNEL_H / 2},
          Shape{3, 65, 5, 9, 7, 2, 1}, Shape{1, 1, 9, KERNEL_H, KERNEL_W, 1, 0},
          Shape{2, 64, 130, 4, 8, 1, 1}}) {
        const int oh = (s.h + 2 * s.pad - KERNEL_H) / s.stride + 1,
                  ow = (s.w + 2 * s.pad - KERNEL_W) / s.stride + 1;
        if (Y_QUADS && oh * ow % 4 != 0) continue;
        for (int order = 0; order < ORDERS; ++order) {
            const char* const when = set_order(order);
            for (const Data data : all_data) {
                if (data != Data::normal && s.in * s.h * s.w * s.out > 100000)
                    continue;  // takes long
                // One kind of data is enough to try the orders.
                if (order > 0 && data != Data::normal) continue;
                const double error = run(s, data);
                const bool bad = !(error <= bound);
                std::printf("%s %d x %d x %d x %d, %d channels, data %d, %s: relative error %.2g\n",
                            bad ? "FAILED" : "ok", s.n, s.in, s.h, s.w, s.out,
                            static_cast<int>(data), when, error);
                failed += bad;
            }
        }
    }
    return failed == 0 ? 0 : 1;
}
