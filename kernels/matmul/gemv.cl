// SPDX-License-Identifier: MIT
// matmul.gemv: C = A B^T with few rows on GPUs, where the rows of A and of B are contiguous along k. B, usually the
// weight, is read once.
//
//   k:    0..3     4..7          4(THREADS-1)..    4 THREADS..
//       | item 0 | item 1 | ... | item THREADS-1 | item 0 | ...     each work-item sums its steps of all MR x NC elements
//
// Define                      meaning                                                     example
// A_STORED, B_STORED          types of the factors (common/storage.clh)                   0, 0
// R_STORED, C_STORED          types of the residual and of the result                     0, 0
// THREADS                     work-items of a work-group: a multiple of 4, at least       64
//                             MR * NC
// MR, NC                      rows and columns of a work-group                            4, 2
// HAS_RESIDUAL                whether the epilogue adds a tensor                          0
// EPILOGUE(v, r)              statements that apply the epilogue to v; r: the residual    v = v + r;
// A_BATCH(i), B_BATCH(i)      offset in elements of matrix i of a batch                   ((i) * a_batch)
//
// Work-group: MR x NC elements of C. When all of k is summed, work-item i adds the sums of all work-items for element i,
// in a fixed order. Local memory: 4 * MR * NC * (THREADS + 1) bytes.
#include "common/storage_fours.clh"

#define LOAD4(X)                                                                                        \
    inline float4 X##_load4(global const X##_T* x, int along, int limit, int aligned) {                 \
        if (along + 4 <= limit) return aligned ? X##_ALIGNED_FOURS(x + along) : X##_FOURS(x + along);    \
        float4 v = (float4)(0.0f);                                                                      \
        v.x = X##_AT(x, along);                                                                         \
        if (along + 1 < limit) v.y = X##_AT(x, along + 1);                                              \
        if (along + 2 < limit) v.z = X##_AT(x, along + 2);                                              \
        return v;                                                                                       \
    }
LOAD4(A)
LOAD4(B)

kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void matmul_gemv(
    global const A_T* a, ulong a_offset, global const B_T* b, ulong b_offset, global const float* bias,
    ulong bias_offset, global const R_T* residual, ulong residual_offset, global C_T* c, ulong c_offset, int m,
    int n, int k, int blocks_m, int blocks_n, long a_batch, long b_batch, float alpha, int has_bias) {
    local float shared_sum[MR * NC * (THREADS + 1)];
    const int id = get_local_id(0);
    const int group = get_group_id(0);
    const int column0 = group % blocks_n * NC;
    const int row0 = group / blocks_n % blocks_m * MR;
    const long batch = group / blocks_n / blocks_m;
    const ulong a_at = a_offset + A_BATCH(batch), b_at = b_offset + B_BATCH(batch);
    const int a_aligned = ((a_at | k) & 3) == 0, b_aligned = ((b_at | k) & 3) == 0;
    float4 sum[MR][NC];
#pragma unroll
    for (int i = 0; i < MR; ++i)
#pragma unroll
        for (int j = 0; j < NC; ++j) sum[i][j] = (float4)(0.0f);
    for (int p = 4 * id; p < k; p += 4 * THREADS) {
        float4 y[NC];
#pragma unroll
        for (int j = 0; j < NC; ++j)
            y[j] = B_load4(b + b_at + (ulong)min(column0 + j, n - 1) * k, p, k, b_aligned);
#pragma unroll
        for (int i = 0; i < MR; ++i) {
            const float4 x = A_load4(a + a_at + (ulong)min(row0 + i, m - 1) * k, p, k, a_aligned);
#pragma unroll
            for (int j = 0; j < NC; ++j) sum[i][j] += x * y[j];
        }
    }
#pragma unroll
    for (int i = 0; i < MR; ++i)
#pragma unroll
        for (int j = 0; j < NC; ++j)
            shared_sum[(i * NC + j) * (THREADS + 1) + id] =
                (sum[i][j].x + sum[i][j].y) + (sum[i][j].z + sum[i][j].w);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int row = row0 + id / NC, column = column0 + id % NC;
    if (id < MR * NC && row < m && column < n) {
        float4 v4 = (float4)(0.0f);
        local const float* own = shared_sum + id * (THREADS + 1);
        for (int t = 0; t < THREADS; t += 4) v4 += (float4)(own[t], own[t + 1], own[t + 2], own[t + 3]);
        float v = alpha * ((v4.x + v4.y) + (v4.z + v4.w));
        if (has_bias) v += bias[bias_offset + column];
        const ulong at = ((ulong)batch * m + row) * n + column;
#if HAS_RESIDUAL
        const float r = R_AT(residual, residual_offset + at);
#endif
        EPILOGUE(v, r)
        C_PUT(c, c_offset + at, v);
    }
}
