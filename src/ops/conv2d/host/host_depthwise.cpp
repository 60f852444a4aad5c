// SPDX-License-Identifier: MIT
// Depthwise convolution on the host.
//
// Forward takes bands of output rows. A band's input is copied with its padding into phase planes:
// plane (py, px) has the rows py, py + stride_h, ... and the columns px, px + stride_w, ..., with
// as many columns as the output needs. In these planes each tap is a distance, and the outputs that
// a vector holds are neighbours, whatever the stride and the width. So a sum over the taps stays in
// a register. A band's planes stay in the L1 cache or near it.
//
// In backward-data each tap multiplies a row of one plane by a factor and adds it to a row of
// another, over the columns that both have.
#include "ops/conv2d/host/host_depthwise.hpp"

#include "runtime/host_vector_width.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace dlprim::conv2d {

namespace {

using std::int64_t;

// The row loops are compiled once per kind of processor and chosen at their first use. GCC's
// target_clones would choose while the library is loaded, when a sanitizer's runtime is not
// initialised yet.
struct RowLoops {
    // to[i * to_step] += f * from[i * from_step].
    void (*add_row)(float* to, int64_t to_step, const float* from, int64_t from_step, float f,
                    int64_t count);
    // The sum of a[i * a_step] * b[i], as sixteen partial sums.
    float (*row_dot)(const float* a, int64_t a_step, const float* b, int64_t count);
    // to[i] = from[i * step].
    void (*copy_row)(float* to, const float* from, int64_t step, int64_t count);
    // to[i] = bias + the sum over t < taps of factors[t] * from[offsets[t] + i], in the order of t.
    // `count` is rounded up to a multiple of sixteen.
    void (*add_taps)(float* to, const float* from, const int64_t* offsets, const float* factors,
                     int64_t taps, float bias, int64_t count);
};

// A macro and not a template, because a function is vectorised for its own target attribute. NUMBER
// is the type in which a row's product is added, without a rounding of its own: what is left where
// large terms cancel, as in spectra, would be lost in it. It is float where the target has fused
// multiply-adds, to which the compiler contracts the expression.
#define DLPRIM_ROW_LOOPS(NAME, TARGET, NUMBER)                                                     \
    struct NAME {                                                                                  \
        TARGET static void add_row(float* to, int64_t to_step, const float* from,                  \
                                   int64_t from_step, float f, int64_t count) {                    \
            const NUMBER factor = f;                                                               \
            if (to_step == 1 && from_step == 1)                                                    \
                for (int64_t i = 0; i < count; ++i)                                                \
                    to[i] = static_cast<float>(to[i] + factor * from[i]);                          \
            else                                                                                   \
                for (int64_t i = 0; i < count; ++i)                                                \
                    to[i * to_step] =                                                              \
                        static_cast<float>(to[i * to_step] + factor * from[i * from_step]);        \
        }                                                                                          \
        TARGET static float row_dot(const float* a, int64_t a_step, const float* b,                \
                                    int64_t count) {                                               \
            float sums[16] = {};                                                                   \
            int64_t i = 0;                                                                         \
            for (; i + 16 <= count; i += 16)                                                       \
                for (int j = 0; j < 16; ++j) sums[j] += a[(i + j) * a_step] * b[i + j];            \
            float tail = 0;                                                                        \
            for (; i < count; ++i) tail += a[i * a_step] * b[i];                                   \
            for (int half = 8; half > 0; half /= 2)                                                \
                for (int j = 0; j < half; ++j) sums[j] += sums[j + half];                          \
            return sums[0] + tail;                                                                 \
        }                                                                                          \
        TARGET static void copy_row(float* to, const float* from, int64_t step, int64_t count) {   \
            if (step == 1)                                                                         \
                for (int64_t i = 0; i < count; ++i) to[i] = from[i];                               \
            else if (step == 2)                                                                    \
                for (int64_t i = 0; i < count; ++i) to[i] = from[i * 2];                           \
            else                                                                                   \
                for (int64_t i = 0; i < count; ++i) to[i] = from[i * step];                        \
        }                                                                                          \
        typedef float Floats __attribute__((vector_size(16 * sizeof(float))));                     \
        typedef NUMBER Numbers __attribute__((vector_size(16 * sizeof(NUMBER))));                  \
        TARGET static void add_taps(float* to, const float* from, const int64_t* offsets,          \
                                    const float* factors, int64_t taps, float bias,                \
                                    int64_t count) {                                               \
            const auto start = static_cast<NUMBER>(bias);                                          \
            int64_t i = 0;                                                                         \
            for (; i + 48 < count; i += 64) {                                                      \
                Numbers sums[4];                                                                   \
                for (int j = 0; j < 4; ++j) sums[j] = Numbers{} + start;                           \
                for (int64_t t = 0; t < taps; ++t)                                                 \
                    for (int j = 0; j < 4; ++j) {                                                  \
                        Floats v;                                                                  \
                        std::memcpy(&v, from + offsets[t] + i + 16 * j, sizeof v);                 \
                        sums[j] +=                                                                 \
                            static_cast<NUMBER>(factors[t]) * __builtin_convertvector(v, Numbers); \
                    }                                                                              \
                for (int j = 0; j < 4; ++j) {                                                      \
                    const Floats v = __builtin_convertvector(sums[j], Floats);                     \
                    std::memcpy(to + i + 16 * j, &v, sizeof v);                                    \
                }                                                                                  \
            }                                                                                      \
            for (; i < count; i += 16) {                                                           \
                Numbers sum = Numbers{} + start;                                                   \
                for (int64_t t = 0; t < taps; ++t) {                                               \
                    Floats v;                                                                      \
                    std::memcpy(&v, from + offsets[t] + i, sizeof v);                              \
                    sum += static_cast<NUMBER>(factors[t]) * __builtin_convertvector(v, Numbers);  \
                }                                                                                  \
                const Floats v = __builtin_convertvector(sum, Floats);                             \
                std::memcpy(to + i, &v, sizeof v);                                                 \
            }                                                                                      \
        }                                                                                          \
        static constexpr RowLoops table{add_row, row_dot, copy_row, add_taps};                     \
    };

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define DLPRIM_VECTORISED optimize(3)
DLPRIM_ROW_LOOPS(Avx512, __attribute__((target("avx512f,avx512vl,fma"), DLPRIM_VECTORISED)), float)
DLPRIM_ROW_LOOPS(Avx2, __attribute__((target("avx2,fma"), DLPRIM_VECTORISED)), float)
DLPRIM_ROW_LOOPS(Baseline, __attribute__((DLPRIM_VECTORISED)), double)
#else
DLPRIM_ROW_LOOPS(Baseline, , double)
#endif

const RowLoops& row_loops() {
    static const RowLoops& found = []() -> const RowLoops& {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
        if (host_vector_width() >= 16) return Avx512::table;
        if (host_vector_width() >= 8) return Avx2::table;
#endif
        return Baseline::table;
    }();
    return found;
}

// Output positions along one dimension for which the tap is inside the image.
struct Span {
    int64_t begin, end;
};
Span valid(int64_t tap, int64_t stride, int64_t size, int64_t outputs) {
    const int64_t begin = tap >= 0 ? 0 : (-tap + stride - 1) / stride;
    const int64_t end = tap >= size ? 0 : (size - tap + stride - 1) / stride;
    const int64_t b = std::min(begin, outputs);
    return {b, std::clamp(end, b, outputs)};
}

// Calls visit(kernel element, output row, input row, columns) for every combination of a tap and an
// output row that overlaps the input.
template <typename Visit>
void for_each_row(const Geometry& g, const Visit& visit) {
    for (int64_t ky = 0; ky < g.kh; ++ky) {
        const Span rows = valid(ky * g.dh - g.pt, g.sh, g.h, g.oh);
        for (int64_t kx = 0; kx < g.kw; ++kx) {
            const Span columns = valid(kx * g.dw - g.pl, g.sw, g.w, g.ow);
            if (columns.begin == columns.end) continue;
            for (int64_t y = rows.begin; y < rows.end; ++y)
                visit(ky * g.kw + kx, y, y * g.sh - g.pt + ky * g.dh, kx * g.dw - g.pl, columns);
        }
    }
}

// Phase planes for bands of `rows` output rows, and where each tap is in them.
struct PhasePlanes {
    int64_t rows, height, pitch;
    std::vector<char> has_row, has_column;  // whether any tap reads the phase
    std::vector<int64_t> offsets;           // by tap

    // Bands whose planes take some 32 KiB.
    explicit PhasePlanes(const Geometry& g)
        : pitch(g.ow + (g.kw - 1) * g.dw / g.sw),
          has_row(static_cast<std::size_t>(g.sh), 0),
          has_column(static_cast<std::size_t>(g.sw), 0) {
        const int64_t more = (g.kh - 1) * g.dh / g.sh;
        rows = std::min(g.oh, std::max<int64_t>(4, 8192 / (pitch * g.sh * g.sw) - more));
        height = rows + more;
        for (int64_t ky = 0; ky < g.kh; ++ky)
            for (int64_t kx = 0; kx < g.kw; ++kx) {
                const int64_t py = ky * g.dh % g.sh, px = kx * g.dw % g.sw;
                has_row[static_cast<std::size_t>(py)] = 1;
                has_column[static_cast<std::size_t>(px)] = 1;
                offsets.push_back((py * g.sw + px) * height * pitch + ky * g.dh / g.sh * pitch +
                                  kx * g.dw / g.sw);
            }
    }
    // With what vectors read and write beyond the last element.
    int64_t input_size(const Geometry& g) const { return g.sh * g.sw * height * pitch + 64; }
    int64_t output_size() const { return rows * pitch + 64; }

    // Copies what output rows from `first` on need of an image.
    void fill(const Geometry& g, const RowLoops& loops, const float* image, int64_t first,
              float* to) const {
        for (int64_t py = 0; py < g.sh; ++py)
            for (int64_t px = 0; px < g.sw; ++px) {
                if (!has_row[static_cast<std::size_t>(py)] ||
                    !has_column[static_cast<std::size_t>(px)])
                    continue;
                const Span inside = valid(px - g.pl, g.sw, g.w, pitch);
                float* row = to + (py * g.sw + px) * height * pitch;
                for (int64_t r = 0; r < height; ++r, row += pitch) {
                    const int64_t y = (first + r) * g.sh + py - g.pt;
                    const Span columns = y >= 0 && y < g.h ? inside : Span{0, 0};
                    std::fill(row, row + columns.begin, 0.0f);
                    if (columns.begin < columns.end)
                        loops.copy_row(row + columns.begin,
                                       image + y * g.w + columns.begin * g.sw + px - g.pl, g.sw,
                                       columns.end - columns.begin);
                    std::fill(row + columns.end, row + pitch, 0.0f);
                }
            }
    }
};

}  // namespace

void depthwise_forward(HostPool& pool, const Geometry& g, const float* x, const float* weight,
                       const float* bias, const HostEpilogue& epilogue, float* y) {
    const int64_t area = g.oh * g.ow, taps = g.kh * g.kw;
    const RowLoops& loops = row_loops();
    const PhasePlanes planes(g);
    pool.parallel_for(g.n * g.out, 1, [&](int64_t begin, int64_t end) {
        static thread_local std::vector<float> scratch;
        const auto size = static_cast<std::size_t>(planes.input_size(g) + planes.output_size());
        if (scratch.size() < size) scratch.resize(size);
        float *input = scratch.data(), *sums = input + planes.input_size(g);
        for (int64_t plane = begin; plane < end; ++plane) {
            const int64_t o = plane % g.out, n = plane / g.out;
            const float* image = x + (n * g.in + o / g.group_out()) * g.h * g.w;
            float* to = y + plane * area;
            for (int64_t first = 0; first < g.oh; first += planes.rows) {
                const int64_t rows = std::min(planes.rows, g.oh - first);
                planes.fill(g, loops, image, first, input);
                loops.add_taps(sums, input, planes.offsets.data(), weight + o * taps, taps,
                               bias ? bias[o] : 0.0f, (rows - 1) * planes.pitch + g.ow);
                for (int64_t r = 0; r < rows; ++r)
                    loops.copy_row(to + (first + r) * g.ow, sums + r * planes.pitch, 1, g.ow);
            }
            if (!epilogue.empty()) epilogue.apply(to, plane * area, area);
        }
    });
}

void depthwise_backward_data(HostPool& pool, const Geometry& g, const float* dy,
                             const float* weight, const HostEpilogue& epilogue, float* dx) {
    const int64_t area = g.h * g.w;
    const auto add_row = row_loops().add_row;
    pool.parallel_for(g.n * g.in, 1, [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
            const int64_t channel = plane % g.in, n = plane / g.in;
            float* to = dx + plane * area;
            std::fill_n(to, area, 0.0f);
            for (int64_t i = 0; i < g.group_out(); ++i) {
                const int64_t o = channel * g.group_out() + i;
                const float* from = dy + (n * g.out + o) * g.oh * g.ow;
                const float* taps = weight + o * g.kh * g.kw;
                for_each_row(g, [&](int64_t tap, int64_t oy, int64_t iy, int64_t d, Span c) {
                    add_row(to + iy * g.w + c.begin * g.sw + d, g.sw, from + oy * g.ow + c.begin, 1,
                            taps[tap], c.end - c.begin);
                });
            }
            if (!epilogue.empty()) epilogue.apply(to, plane * area, area);
        }
    });
}

void depthwise_backward_filter(HostPool& pool, const Geometry& g, const float* x, const float* dy,
                               float* dweight) {
    const int64_t area = g.kh * g.kw;
    const auto row_dot = row_loops().row_dot;
    pool.parallel_for(g.out * area, 1, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; ++at) {
            const int64_t o = at / area, ky = at % area / g.kw, kx = at % g.kw;
            const Span rows = valid(ky * g.dh - g.pt, g.sh, g.h, g.oh);
            const Span columns = valid(kx * g.dw - g.pl, g.sw, g.w, g.ow);
            const int64_t count = columns.end - columns.begin;
            double sum = 0;
            for (int64_t n = 0; n < g.n && count > 0; ++n) {
                const float* image = x + (n * g.in + o / g.group_out()) * g.h * g.w;
                const float* gradient = dy + (n * g.out + o) * g.oh * g.ow;
                for (int64_t y = rows.begin; y < rows.end; ++y)
                    sum += static_cast<double>(row_dot(image + (y * g.sh - g.pt + ky * g.dh) * g.w +
                                                           columns.begin * g.sw - g.pl + kx * g.dw,
                                                       g.sw, gradient + y * g.ow + columns.begin,
                                                       count));
            }
            dweight[at] = static_cast<float>(sum);
        }
    });
}

}  // namespace dlprim::conv2d
