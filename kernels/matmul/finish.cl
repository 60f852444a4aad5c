// SPDX-License-Identifier: MIT
// Adds the partial sums of a matrix product whose K was split (split-K), in order, and applies bias and epilogue.
//
//     parts   [ part 0: count floats ][ part 1 ] ... [ part splits - 1 ]
//                 |                       |                |
//     c       [   +-----------------------+----------------+-> * alpha, bias, epilogue -> element `at` ]
//
// Define               meaning                                                    example
// HAS_RESIDUAL         1 if the epilogue has an operand of C's shape              0
// EPILOGUE(v, r)       applies the epilogue to v; r is the residual's element     v = fmax(v, 0.0f);
// C_STORED, R_STORED   types of C and of the residual (common/storage.clh)        0, 0
//
// Work-item: one element. Work-group: of any size, its items share nothing. Local memory: none.
#include "common/storage.clh"

kernel void matmul_finish(global const float* parts, ulong parts_offset, global const float* bias, ulong bias_offset,
                          global const R_T* residual, ulong residual_offset, global C_T* c, ulong c_offset,
                          long count, int n, int splits, float alpha, int has_bias) {
    const long at = get_global_id(0);
    if (at >= count) return;
    float v = 0.0f;
    for (int s = 0; s < splits; ++s) v += parts[parts_offset + s * count + at];
    v *= alpha;
    if (has_bias) v += bias[bias_offset + at % n];
#if HAS_RESIDUAL
    const float r = R_AT(residual, residual_offset + at);
#endif
    EPILOGUE(v, r)
    C_PUT(c, c_offset + at, v);
}
