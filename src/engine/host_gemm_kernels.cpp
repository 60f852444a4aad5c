// SPDX-License-Identifier: MIT
// The register-tile kernels of host_gemm, written with GCC's vector extensions and compiled once
// per kind of processor.
//
// A kernel is a macro and not a template. The compiler splits vector operations for the target of
// the function that contains them before it inlines. So each body must be in a function with its
// own target attribute.
#include "engine/host_gemm_kernels.hpp"

#include "runtime/host_vector_width.hpp"

#include <algorithm>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace dlprim {

namespace {

// NOLINTBEGIN(bugprone-macro-parentheses): arguments are numbers, names of types and statements.

// The body of a function that multiplies a tile of ROWS x 2 vectors V of WIDTH sums, which it
// stores as vectors F of floats. The statements behind NEXT add row i of a step, whose columns are
// b0 and b1, to sum[i]; NEXT goes to the next step of a.
#define DLPRIM_GEMM_TILE(WIDTH, ROWS, NEXT, ...)                                         \
    V sum[ROWS][2];                                                                      \
    _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; ++i) sum[i][0] = sum[i][1] = V{}; \
    for (std::int64_t p = 0; p < depth; ++p) {                                           \
        V b0, b1;                                                                        \
        std::memcpy(&b0, b, sizeof(V));                                                  \
        std::memcpy(&b1, b + WIDTH, sizeof(V));                                          \
        __builtin_prefetch(b + 16 * WIDTH);                                              \
        _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; ++i) {                        \
            __VA_ARGS__;                                                                 \
        }                                                                                \
        NEXT;                                                                            \
        b += 2 * WIDTH;                                                                  \
    }                                                                                    \
    _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; ++i) {                            \
        const F f0 = __builtin_convertvector(sum[i][0], F),                              \
                f1 = __builtin_convertvector(sum[i][1], F);                              \
        std::memcpy(tile + i * 2 * WIDTH, &f0, sizeof(F));                               \
        std::memcpy(tile + i * 2 * WIDTH + WIDTH, &f1, sizeof(F));                       \
    }

// dot() has 64 partial sums at every width, so that it gives the same bits.
#define DLPRIM_GEMM_KERNELS(NAME, TARGET, WIDTH, ROWS)                                             \
    struct NAME {                                                                                  \
        typedef float V __attribute__((vector_size(WIDTH * sizeof(float))));                       \
        typedef V F;                                                                               \
        TARGET static void multiply(std::int64_t depth, const float* a, const float* b,            \
                                    float* tile) {                                                 \
            DLPRIM_GEMM_TILE(WIDTH, ROWS, a += ROWS, sum[i][0] += a[i] * b0;                       \
                             sum[i][1] += a[i] * b1)                                               \
        }                                                                                          \
        TARGET static void multiply_rows(std::int64_t depth, const float* a, std::int64_t stride,  \
                                         const float* b, float* tile) {                            \
            const float *a0 = a, *a3 = a + 3 * stride, *a6 = a + 6 * stride, *a9 = a + 9 * stride; \
            DLPRIM_GEMM_TILE(                                                                      \
                WIDTH, ROWS, (++a0, ++a3, ++a6, ++a9),                                             \
                const float* const from = i < 6 ? (i < 3 ? a0 : a3) : (i < 9 ? a6 : a9);           \
                const float factor = from[i % 3 * stride]; sum[i][0] += factor * b0;               \
                sum[i][1] += factor * b1)                                                          \
        }                                                                                          \
        TARGET static float dot(std::int64_t count, const float* a, const float* b) {              \
            V sum[64 / WIDTH];                                                                     \
            _Pragma("GCC unroll 16") for (int i = 0; i < 64 / WIDTH; ++i) sum[i] = V{};            \
            std::int64_t p = 0;                                                                    \
            for (; p + 64 <= count; p += 64)                                                       \
                _Pragma("GCC unroll 16") for (int i = 0; i < 64 / WIDTH; ++i) {                    \
                    V u, v;                                                                        \
                    std::memcpy(&u, a + p + i * WIDTH, sizeof(V));                                 \
                    std::memcpy(&v, b + p + i * WIDTH, sizeof(V));                                 \
                    sum[i] += u * v;                                                               \
                }                                                                                  \
            float lanes[64];                                                                       \
            std::memcpy(lanes, sum, sizeof lanes);                                                 \
            for (int i = 0; p < count; ++p, ++i) lanes[i] += a[p] * b[p];                          \
            for (int half = 32; half > 0; half /= 2)                                               \
                for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];                        \
            return lanes[0];                                                                       \
        }                                                                                          \
        static constexpr HostGemmKernels table{ROWS, 2 * WIDTH, multiply, multiply_rows, dot};     \
    };

#if defined(__x86_64__)
DLPRIM_GEMM_KERNELS(Avx512, __attribute__((target("avx512f,avx512vl,fma"))), 16, 12)
DLPRIM_GEMM_KERNELS(Avx2, __attribute__((target("avx2,fma"))), 8, 6)
#endif
DLPRIM_GEMM_KERNELS(Baseline, , 4, 6)

// A tile of 16-bit integers, as above: MULTIPLY_ADD(sum, a, b) adds the products of both halves of
// each word.
#define DLPRIM_PAIR_TILES(NAME, TARGET, WIDTH, ROWS, MULTIPLY_ADD)                                \
    struct NAME {                                                                                 \
        typedef std::int32_t V __attribute__((vector_size(WIDTH * sizeof(float))));               \
        typedef float F __attribute__((vector_size(WIDTH * sizeof(float))));                      \
        TARGET static void multiply(std::int64_t depth, const float* a, const float* b,           \
                                    float* tile) {                                                \
            DLPRIM_GEMM_TILE(WIDTH, ROWS, a += ROWS, std::int32_t word;                           \
                             std::memcpy(&word, a + i, sizeof word); const V factor = V{} + word; \
                             sum[i][0] = MULTIPLY_ADD(sum[i][0], factor, b0);                     \
                             sum[i][1] = MULTIPLY_ADD(sum[i][1], factor, b1))                     \
        }                                                                                         \
        static constexpr HostGemmKernels table{ROWS, 2 * WIDTH, multiply, nullptr, nullptr};      \
    };
#define DLPRIM_PAIR_KERNELS(NAME, TARGET, WIDTH, ROWS, MULTIPLY_ADD)                          \
    DLPRIM_PAIR_TILES(NAME##Tiles, TARGET, WIDTH, ROWS, MULTIPLY_ADD)                         \
    DLPRIM_PAIR_TILES(NAME##Lines, TARGET, WIDTH, 1, MULTIPLY_ADD)                            \
    struct NAME {                                                                             \
        TARGET static void join(std::int64_t count, const float* even, const float* odd,      \
                                float* to) {                                                  \
            typedef std::int32_t Word __attribute__((may_alias));                             \
            Word* const words = reinterpret_cast<Word*>(to);                                  \
            for (std::int64_t i = 0; i < count; ++i)                                          \
                words[i] = (static_cast<std::int32_t>(even[i]) & 0xffff) |                    \
                           static_cast<std::int32_t>(odd[i]) << 16;                           \
        }                                                                                     \
        static constexpr HostPairKernels table{NAME##Tiles::table, NAME##Lines::table, join}; \
    };

#if defined(__x86_64__)
#define DLPRIM_DOT_512(sum, a, b) \
    ((V)_mm512_dpwssd_epi32((__m512i)(sum), (__m512i)(a), (__m512i)(b)))
#define DLPRIM_MADD_512(sum, a, b) ((sum) + (V)_mm512_madd_epi16((__m512i)(a), (__m512i)(b)))
#define DLPRIM_MADD_256(sum, a, b) ((sum) + (V)_mm256_madd_epi16((__m256i)(a), (__m256i)(b)))
#define DLPRIM_MADD_128(sum, a, b) ((sum) + (V)_mm_madd_epi16((__m128i)(a), (__m128i)(b)))
DLPRIM_PAIR_KERNELS(PairsVnni, __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"))), 16,
                    12, DLPRIM_DOT_512)
DLPRIM_PAIR_KERNELS(PairsAvx512, __attribute__((target("avx512f,avx512bw,avx512vl"))), 16, 12,
                    DLPRIM_MADD_512)
DLPRIM_PAIR_KERNELS(PairsAvx2, __attribute__((target("avx2"))), 8, 6, DLPRIM_MADD_256)
DLPRIM_PAIR_KERNELS(PairsBaseline, , 4, 6, DLPRIM_MADD_128)
#else
#define DLPRIM_MADD(sum, a, b) \
    ((sum) + (((a) << 16) >> 16) * (((b) << 16) >> 16) + ((a) >> 16) * ((b) >> 16))
DLPRIM_PAIR_KERNELS(PairsBaseline, , 4, 6, DLPRIM_MADD)
#endif
// NOLINTEND(bugprone-macro-parentheses)

typedef float V4 __attribute__((vector_size(16)));

V4 load4(const float* from) {
    V4 v;
    std::memcpy(&v, from, sizeof(V4));
    return v;
}

// to[p * width + i] = from[i * stride + p] for i, p < 4.
void transpose_4x4(const float* from, std::int64_t stride, float* to, std::int64_t width) {
    const V4 r0 = load4(from), r1 = load4(from + stride);
    const V4 r2 = load4(from + 2 * stride), r3 = load4(from + 3 * stride);
    const V4 a = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
    const V4 b = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
    const V4 c = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
    const V4 d = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
    const V4 columns[4] = {
        __builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7),
        __builtin_shufflevector(c, d, 0, 1, 4, 5), __builtin_shufflevector(c, d, 2, 3, 6, 7)};
    for (int p = 0; p < 4; ++p) std::memcpy(to + p * width, &columns[p], sizeof(V4));
}

}  // namespace

void pack_rows(const float* from, std::int64_t stride, int count, int width, std::int64_t depth,
               float* to) {
    // Sixteen steps of K at a time: one cache line of each row.
    for (std::int64_t begin = 0; begin < depth; begin += 16) {
        const std::int64_t end = std::min(depth, begin + 16);
        const std::int64_t whole = end - (end - begin) % 4;
        int i = 0;
        for (; i + 4 <= count; i += 4) {
            const float* rows = from + i * stride;
            for (std::int64_t p = begin; p < whole; p += 4)
                transpose_4x4(rows + p, stride, to + p * width + i, width);
            for (std::int64_t p = whole; p < end; ++p)
                for (int j = 0; j < 4; ++j) to[p * width + i + j] = rows[j * stride + p];
        }
        for (; i < count; ++i)
            for (std::int64_t p = begin; p < end; ++p) to[p * width + i] = from[i * stride + p];
        if (count < width)
            for (std::int64_t p = begin; p < end; ++p)
                std::fill(to + p * width + count, to + (p + 1) * width, 0.0f);
    }
}

const HostGemmKernels& host_gemm_kernels() {
    static const HostGemmKernels& found = []() -> const HostGemmKernels& {
#if defined(__x86_64__)
        if (host_vector_width() >= 16) return Avx512::table;
        if (host_vector_width() >= 8) return Avx2::table;
#endif
        return Baseline::table;
    }();
    return found;
}

const HostPairKernels& host_pair_kernels() {
    static const HostPairKernels& found = []() -> const HostPairKernels& {
#if defined(__x86_64__)
        if (host_vector_width() >= 16 && __builtin_cpu_supports("avx512vnni"))
            return PairsVnni::table;
        if (host_vector_width() >= 16) return PairsAvx512::table;
        if (host_vector_width() >= 8) return PairsAvx2::table;
#endif
        return PairsBaseline::table;
    }();
    return found;
}

}  // namespace dlprim
