// SPDX-License-Identifier: MIT
// matmul.wide: C[m, n] = alpha * op(A)[m, k] op(B)[k, n] for doubles and integers, of any shape and strides.
//
//                     B: 4 columns
//                   +---+---+---+---+
//                   |   |   |   |   | row p of k
//                   +---+---+---+---+
//     +---+         +---+---+---+---+
//     |   |         |               |
//     |   | 4 rows  |  sum[4][4]    |
//     |   | of A    |               |
//     +---+         +---+---+---+---+
//
// Define                      meaning                                                     example
// ELEMENT, REAL, DOUBLES      types of elements and sums (common/element.clh)             double, double
// FACTOR(bits)                alpha from its argument                                     as_double(bits)
// HAS_RESIDUAL                whether the epilogue adds a tensor                          0
//
// Work-item: a tile of four rows and four columns, of which it writes what is inside C. Neighbouring work-items have
// neighbouring columns. Integers wrap, as in C without a sign. Local memory: none.
#include "common/element.clh"
#include "matmul/batch.clh"

#define SIDE 4

kernel void matmul_wide(global const A_T* a, ulong a_offset, global const B_T* b, ulong b_offset,
                        global const A_T* bias, ulong bias_offset, global const R_T* residual, ulong residual_offset,
                        global C_T* c, ulong c_offset, long count, int m, int n, int k, long a_row, long a_k, long b_k,
                        long b_column, int batch_1, int batch_2, int batch_3, int batch_4,
                        int batch_5, long a_0, long a_1, long a_2, long a_3, long a_4, long a_5, long b_0, long b_1,
                        long b_2, long b_3, long b_4, long b_5, long alpha, int has_bias) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const int columns = (n + SIDE - 1) / SIDE, rows = (m + SIDE - 1) / SIDE;
    const int column = (int)(at % columns) * SIDE, row = (int)(at / columns % rows) * SIDE;
    const long batch = at / columns / rows;
    a += a_offset + A_BATCH(batch);
    b += b_offset + B_BATCH(batch);
    long from_a[SIDE], from_b[SIDE];
    REAL sum[SIDE][SIDE];
#pragma unroll
    for (int i = 0; i < SIDE; ++i) {
        // Rows and columns beyond the end repeat the last one.
        from_a[i] = min(row + i, m - 1) * a_row;
        from_b[i] = min(column + i, n - 1) * b_column;
#pragma unroll
        for (int j = 0; j < SIDE; ++j) sum[i][j] = 0;
    }
    for (int p = 0; p < k; ++p) {
        REAL left[SIDE], right[SIDE];
#pragma unroll
        for (int i = 0; i < SIDE; ++i) {
            left[i] = A_AT(a, from_a[i] + p * a_k);
            right[i] = B_AT(b, from_b[i] + p * b_k);
        }
#pragma unroll
        for (int i = 0; i < SIDE; ++i)
#pragma unroll
            for (int j = 0; j < SIDE; ++j) sum[i][j] += left[i] * right[j];
    }
#pragma unroll
    for (int i = 0; i < SIDE; ++i)
#pragma unroll
        for (int j = 0; j < SIDE; ++j) {
            if (row + i >= m || column + j >= n) continue;
            const long to = (batch * m + row + i) * n + column + j;
            REAL v = FACTOR(alpha) * sum[i][j];
            if (has_bias) v += A_AT(bias, bias_offset + column + j);
#if HAS_RESIDUAL
            v += R_AT(residual, residual_offset + to);
#endif
            C_PUT(c, c_offset + to, v);
        }
}
