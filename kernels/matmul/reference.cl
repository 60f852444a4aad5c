// SPDX-License-Identifier: MIT
// matmul.reference: one work-item an element of C, any shape. The sum runs over blocks of 64 products,
// which keeps the rounding error of long sums down.
// Defines: HAS_RESIDUAL, EPILOGUE(v, r), A_BATCH(i), B_BATCH(i). Local memory: none.
#include "common/storage.clh"

kernel void matmul_reference(global const A_T* a, ulong a_offset, global const B_T* b, ulong b_offset,
                             global const float* bias, ulong bias_offset, global const R_T* residual,
                             ulong residual_offset, global C_T* c, ulong c_offset, long count, int m, int n, int k,
                             long a_row, long a_k, long b_k, long b_column, long a_batch, long b_batch, float alpha, int has_bias) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const long column = at % n, row = at / n % m, batch = at / n / m;
    a += a_offset + A_BATCH(batch) + row * a_row;
    b += b_offset + B_BATCH(batch) + column * b_column;
    float sum = 0.0f;
    for (int first = 0; first < k; first += 64) {
        const int last = min(k, first + 64);
        float part = 0.0f;
        for (int p = first; p < last; ++p) part += A_AT(a, p * a_k) * B_AT(b, p * b_k);
        sum += part;
    }
    float v = alpha * sum;
    if (has_bias) v += bias[bias_offset + column];
#if HAS_RESIDUAL
    const float r = R_AT(residual, residual_offset + at);
#endif
    EPILOGUE(v, r)
    C_PUT(c, c_offset + at, v);
}
