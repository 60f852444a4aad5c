// SPDX-License-Identifier: MIT
// Second pass of products split along k: C = epilogue(alpha * sum over parts, in order, + bias). A work-item an
// element. Defines: HAS_RESIDUAL, EPILOGUE. Local memory: none.

kernel void matmul_finish(global const float* parts, ulong parts_offset, global const float* bias, ulong bias_offset,
                          global const float* residual, ulong residual_offset, global float* c, ulong c_offset,
                          long count, int n, int splits, float alpha, int has_bias) {
    const long at = get_global_id(0);
    if (at >= count) return;
    float v = 0.0f;
    for (int s = 0; s < splits; ++s) v += parts[parts_offset + s * count + at];
    v *= alpha;
    if (has_bias) v += bias[bias_offset + at % n];
#if HAS_RESIDUAL
    const float r = residual[residual_offset + at];
#endif
    EPILOGUE(v, r)
    c[c_offset + at] = v;
}
