// SPDX-License-Identifier: MIT
// matmul.reference: C[m, n] = alpha * op(A)[m, k] op(B)[k, n], for matrices of any shape and strides.
//
// Define                      meaning                                                     example
// A_STORED, B_STORED          types of the factors (common/storage.clh)                   0, 0
// R_STORED, C_STORED          types of the residual and of the result                     0, 0
// HAS_RESIDUAL                whether the epilogue adds a tensor                          0
// EPILOGUE(v, r)              statements that apply the epilogue to v; r: the residual    v = v + r;
//
// Work-item: one element of C. It sums blocks of 64 products and then adds the blocks, so that the rounding error of
// long sums stays small. Local memory: none.
#include "common/storage.clh"
#include "matmul/batch.clh"

kernel void matmul_reference(global const A_T* a, ulong a_offset, global const B_T* b, ulong b_offset,
                             global const float* bias, ulong bias_offset, global const R_T* residual,
                             ulong residual_offset, global C_T* c, ulong c_offset, long count, int m, int n, int k,
                             long a_row, long a_k, long b_k, long b_column, int batch_1, int batch_2, int batch_3,
    int batch_4, int batch_5, long a_0, long a_1, long a_2, long a_3, long a_4, long a_5,
    long b_0, long b_1, long b_2, long b_3, long b_4, long b_5, float alpha, int has_bias) {
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
