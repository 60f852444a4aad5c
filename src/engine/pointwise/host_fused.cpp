// SPDX-License-Identifier: MIT
// Loops of fused multiply-adds, compiled for processors with the instruction and without.
// Loops over lines of hundreds of elements: worth vectors whatever the build type. Before the
// headers, since functions with other options would not be inlined.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif
#include "engine/pointwise/host_fused.hpp"

#include <cmath>

namespace dlprim::pointwise {
namespace {

using std::int64_t;

#if defined(__x86_64__)

// A builtin becomes the instruction only in a function that carries the target itself, so these are
// no templates of a loop.
__attribute__((target("avx2,fma"))) void by_instruction(const float* a, const float* b,
                                                        const float* c, float* y, int64_t n) {
    for (int64_t j = 0; j < n; ++j) y[j] = __builtin_fmaf(a[j], b[j], c[j]);
}
__attribute__((target("avx2,fma"))) void by_instruction(const double* a, const double* b,
                                                        const double* c, double* y, int64_t n) {
    for (int64_t j = 0; j < n; ++j) y[j] = __builtin_fma(a[j], b[j], c[j]);
}

bool has_instruction() {
    static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return has;
}

void without_instruction(const float* a, const float* b, const float* c, float* y, int64_t n) {
    for (int64_t j = 0; j < n; ++j) y[j] = fused_in_double(a[j], b[j], c[j]);
}

#else

// Elsewhere the instruction is there, or the C library's function is the best there is.
template <typename T>
void by_instruction(const T* a, const T* b, const T* c, T* y, int64_t n) {
    for (int64_t j = 0; j < n; ++j) y[j] = std::fma(a[j], b[j], c[j]);
}
constexpr bool has_instruction() {
    return true;
}
void without_instruction(const float*, const float*, const float*, float*, int64_t) {}

#endif

}  // namespace

void fused_line(const float* a, const float* b, const float* c, float* y, std::int64_t n) {
    has_instruction() ? by_instruction(a, b, c, y, n) : without_instruction(a, b, c, y, n);
}

void fused_line(const double* a, const double* b, const double* c, double* y, std::int64_t n) {
    if (has_instruction())
        by_instruction(a, b, c, y, n);
    else
        for (int64_t j = 0; j < n; ++j) y[j] = std::fma(a[j], b[j], c[j]);
}

}  // namespace dlprim::pointwise
