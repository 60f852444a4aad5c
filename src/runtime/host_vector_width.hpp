// SPDX-License-Identifier: MIT
// The vectors that engines on the host use.
#pragma once

namespace dlprim {

/// Floats in a vector: 16 with AVX-512 (F, BW, CD, DQ and VL), 8 with AVX2, FMA, BMI and F16C, and
/// 4 elsewhere. `vector_width` in DLPRIM_TRAITS lowers it. It is found once per process.
int host_vector_width();

}  // namespace dlprim
