// SPDX-License-Identifier: MIT
// Instructions and reductions of the pointwise language on lines of floats, as vector code for the
// processor that is found at run time.
#pragma once

#include "engine/pointwise/functions.hpp"

#include <cstdint>

namespace dlprim::pointwise {

/// Results have the same bits on all processors with fused multiply-adds, whatever the width of
/// their vectors: each lane is computed alike, and sums have sixteen partial sums everywhere.
/// Any number of threads may call these functions.
struct VectorLines {
    /// y[j] = op(a[j], b[j], c[j]) for j < n, where `y` may be one of the operands. Operands that
    /// the instruction lacks may be null. Returns false, and writes nothing, if the instruction has
    /// no vector code.
    bool (*compute)(Op op, const float* a, const float* b, const float* c, float* y,
                    std::int64_t n);
    /// v[j] where it is below `low` or above `high` becomes that. NaN stays.
    void (*clamp)(float* v, float low, float high, std::int64_t n);
    /// v[j] becomes v[j] <= -3 ? 0 : v[j] >= 3 ? v[j] : v[j] * (v[j] + 3) / 6.
    void (*hardswish)(float* v, std::int64_t n);
    /// The sum of v[j] for j < n, in double.
    double (*sum)(const float* v, std::int64_t n);
    /// The largest and the smallest of `start` and v[j] for j < n; NaN if one of them is.
    float (*max)(float start, const float* v, std::int64_t n);
    float (*min)(float start, const float* v, std::int64_t n);
};

/// Those for this processor (host_vector_width()).
const VectorLines& vector_lines();
/// Those for vectors of at most `width` floats, which the processor must have.
const VectorLines& vector_lines(int width);

}  // namespace dlprim::pointwise
