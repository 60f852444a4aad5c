// SPDX-License-Identifier: MIT
// matmul.dot: C = A B^T on CPUs, where the rows of A and of B are contiguous along k. InnerProduct is such a product:
// B is its weight, which is read in place, once for every MR rows of A.
//
//                       NV columns of C
//                      +----+----+
//   MR rows of C       | W  | W  |   each element of C is a vector of W partial sums, which stays in registers over
//                      | W  | W  |   all of k. At the end the W lanes are added up.
//                      +----+----+
//
// Define                      meaning                                                     example
// W                           lanes of a vector                                           8
// MR, NV                      rows and columns of a block, 1..8 and 1..4                  4, 2
// HAS_RESIDUAL                whether the epilogue adds a tensor                          0
// EPILOGUE(v, r)              statements that apply the epilogue to v; r: the residual    v = v + r;
//
// Work-item: several blocks that lie side by side. Rows and columns beyond the edge of C repeat the last one and are
// not stored. Work-group: one work-item. Local memory: none.

#include "matmul/batch.clh"
#include "matmul/vector_tile.clh"

#if W == 16
inline float across(vec x) {
    const float8 h = x.lo + x.hi;
    const float4 q = h.lo + h.hi;
    const float2 p = q.lo + q.hi;
    return p.x + p.y;
}
#elif W == 8
inline float across(vec x) {
    const float4 q = x.lo + x.hi;
    const float2 p = q.lo + q.hi;
    return p.x + p.y;
}
#else
inline float across(vec x) {
    const float2 p = x.lo + x.hi;
    return p.x + p.y;
}
#endif

inline void put(float v, int row, int column, int n, int has_bias, global float* c, global const float* bias,
                global const float* residual) {
    if (has_bias) v += bias[column];
    const long at = (long)row * n + column;
#if HAS_RESIDUAL
    const float r = residual[at];
#endif
    EPILOGUE(v, r)
    c[at] = v;
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_dot(
    global const float* a, ulong a_offset, global const float* b, ulong b_offset, global const float* bias,
    ulong bias_offset, global const float* residual, ulong residual_offset, global float* c, ulong c_offset, int m,
    int n, int k, int columns, int batch_middle, int batch_inner, long a_outer, long a_middle, long a_inner,
    long b_outer, long b_middle, long b_inner, float alpha, int has_bias) {
    const int row = get_global_id(0) * MR;
    const int first = get_global_id(1) * columns, last = min(n, first + columns);
    const long batch = get_global_id(2);
    a += a_offset + A_BATCH(batch);
    b += b_offset + B_BATCH(batch);
    c += c_offset + (ulong)batch * m * n;
    bias += bias_offset;
    residual += residual_offset + (ulong)batch * m * n;
    for (int column = first; column < last; column += NV) {
        global const float *pa[MR], *pb[NV];
        vec acc[MR][NV];
        float tails[MR][NV];
#pragma unroll
        for (int r = 0; r < MR; ++r) {
            pa[r] = a + (long)min(row + r, m - 1) * k;
#pragma unroll
            for (int v = 0; v < NV; ++v) acc[r][v] = (vec)(0.0f), tails[r][v] = 0.0f;
        }
#pragma unroll
        for (int v = 0; v < NV; ++v) pb[v] = b + (long)min(column + v, n - 1) * k;
        int p = 0;
        for (; p + W <= k; p += W) {
            vec b_now[NV];
#pragma unroll
            for (int v = 0; v < NV; ++v) b_now[v] = VLOAD(0, pb[v] + p);
#pragma unroll
            for (int r = 0; r < MR; ++r) add_products(acc[r], VLOAD(0, pa[r] + p), b_now);
        }
        for (; p < k; ++p)
            FOR_SUMS tails[r][v] += pa[r][p] * pb[v][p];
        // By way of memory, so that sums across, bias and epilogue are compiled once and not MR * NV times.
        float lanes[MR * NV * W], ends[MR * NV];
        FOR_SUMS {
                VSTORE(acc[r][v], r * NV + v, lanes);
                ends[r * NV + v] = tails[r][v];
            }
        for (int r = 0; r < MR && row + r < m; ++r)
            for (int v = 0; v < NV && column + v < n; ++v)
                put(alpha * (across(VLOAD(r * NV + v, lanes)) + ends[r * NV + v]), row + r, column + v, n, has_bias, c, bias,
                    residual);
    }
}
