// SPDX-License-Identifier: MIT
// Loops of fused multiply-adds, compiled for processors with and without the instruction. They run
// over lines of hundreds of elements, so they are vectorised in every build type. This must come
// before the headers, because functions with other options could not be inlined.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif
#include "engine/pointwise/host_fused.hpp"

#include "runtime/host_vector_width.hpp"

#include <cmath>

namespace dlprim::pointwise {
namespace {

using std::int64_t;

#if defined(__x86_64__)

// The builtin becomes an instruction only in a function that has the target attribute itself, so
// these loops are no template.
__attribute__((target("avx2,fma"))) void by_instruction(const float* a, const float* b,
                                                        const float* c, float* y, int64_t n) {
    for (int64_t j = 0; j < n; ++j) y[j] = __builtin_fmaf(a[j], b[j], c[j]);
}
__attribute__((target("avx2,fma"))) void by_instruction(const double* a, const double* b,
                                                        const double* c, double* y, int64_t n) {
    for (int64_t j = 0; j < n; ++j) y[j] = __builtin_fma(a[j], b[j], c[j]);
}

bool has_instruction() {
    return host_vector_width() >= 8;
}

void without_instruction(const float* a, const float* b, const float* c, float* y, int64_t n) {
    for (int64_t j = 0; j < n; ++j) y[j] = fused_in_double(a[j], b[j], c[j]);
}

#else

// On other targets, either the instruction is always available or the C library's function is the
// best choice.
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
