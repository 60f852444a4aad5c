// SPDX-License-Identifier: MIT
// The register-tile kernels of host_gemm in GCC's vector extensions, compiled once for each kind of
// processor.
//
// A kernel is a macro and not a template: the compiler splits vector operations for the target of
// the function in which they stand before it inlines, so each body must stand in a function that
// carries its target.
#include "engine/host_gemm_kernels.hpp"

#include <cstring>

namespace dlprim {

namespace {

// A tile is ROWS x 2 vectors of WIDTH floats; dot() keeps four vectors of partial sums.
#define DLPRIM_GEMM_KERNELS(NAME, TARGET, WIDTH, ROWS)                                           \
    struct NAME {                                                                                \
        typedef float V __attribute__((vector_size(WIDTH * sizeof(float))));                     \
        typedef float U                                                                          \
            __attribute__((vector_size(WIDTH * sizeof(float)), aligned(4), may_alias));          \
        TARGET static void multiply(std::int64_t depth, const float* a, const float* b,          \
                                    float* tile) {                                               \
            V sum[ROWS][2];                                                                      \
            _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; ++i) sum[i][0] = sum[i][1] = V{}; \
            for (std::int64_t p = 0; p < depth; ++p) {                                           \
                V b0, b1;                                                                        \
                std::memcpy(&b0, b, sizeof(V));                                                  \
                std::memcpy(&b1, b + WIDTH, sizeof(V));                                          \
                __builtin_prefetch(b + 16 * WIDTH);                                              \
                _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; ++i) {                        \
                    sum[i][0] += a[i] * b0;                                                      \
                    sum[i][1] += a[i] * b1;                                                      \
                }                                                                                \
                a += ROWS;                                                                       \
                b += 2 * WIDTH;                                                                  \
            }                                                                                    \
            _Pragma("GCC unroll 16") for (int i = 0; i < ROWS; ++i) {                            \
                std::memcpy(tile + i * 2 * WIDTH, &sum[i][0], sizeof(V));                        \
                std::memcpy(tile + i * 2 * WIDTH + WIDTH, &sum[i][1], sizeof(V));                \
            }                                                                                    \
        }                                                                                        \
        TARGET static float dot(std::int64_t count, const float* a, const float* b) {            \
            V sum[4] = {V{}, V{}, V{}, V{}};                                                     \
            std::int64_t p = 0;                                                                  \
            for (; p + 4 * WIDTH <= count; p += 4 * WIDTH)                                       \
                _Pragma("GCC unroll 4") for (int i = 0; i < 4; ++i) {                            \
                    V u, v;                                                                      \
                    std::memcpy(&u, a + p + i * WIDTH, sizeof(V));                               \
                    std::memcpy(&v, b + p + i * WIDTH, sizeof(V));                               \
                    sum[i] += u * v;                                                             \
                }                                                                                \
            float lanes[WIDTH];                                                                  \
            const V total = (sum[0] + sum[1]) + (sum[2] + sum[3]);                               \
            std::memcpy(lanes, &total, sizeof(V));                                               \
            float tail = 0;                                                                      \
            for (; p < count; ++p) tail += a[p] * b[p];                                          \
            for (int half = WIDTH / 2; half > 0; half /= 2)                                      \
                for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];                      \
            return lanes[0] + tail;                                                              \
        }                                                                                        \
        static constexpr HostGemmKernels table{ROWS, 2 * WIDTH, multiply, dot};                  \
    };

#if defined(__x86_64__)
DLPRIM_GEMM_KERNELS(Avx512, __attribute__((target("avx512f"))), 16, 12)
DLPRIM_GEMM_KERNELS(Avx2, __attribute__((target("avx2,fma"))), 8, 6)
#endif
DLPRIM_GEMM_KERNELS(Baseline, , 4, 6)

}  // namespace

const HostGemmKernels& host_gemm_kernels() {
    static const HostGemmKernels& found = []() -> const HostGemmKernels& {
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx512f")) return Avx512::table;
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Avx2::table;
#endif
        return Baseline::table;
    }();
    return found;
}

}  // namespace dlprim
