// SPDX-License-Identifier: MIT
// Second pass of products split along k: C = epilogue(alpha * sum over parts, in order, + bias). A work-item an
// element. Defines: HAS_RESIDUAL, EPILOGUE. Local memory: none.
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
