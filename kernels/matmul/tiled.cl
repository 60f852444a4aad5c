// SPDX-License-Identifier: MIT
// matmul.tiled: products by work-group tiles in local memory, for any GPU.
//
//            BN                  C[m, n] = alpha * op(A)[m, k] op(B)[k, n]
//       +---------+              local: a[2][BK][BM + 4], b[2][BK][BN + 4]
//    BM | tx*4 -> |              BM = 4 * GM * TY, BN = 4 * GN * TX
//       +---------+
//
// Define               meaning                                                            example
// TX, TY               work-items along a tile's columns and rows                         16, 16
// GM, GN               blocks of 4 x 4 elements per work-item, down and across            2, 2
// BK                   steps of k in a buffer                                             8
// TA, TB               1 if A lies as [k, m], if B lies as [n, k]                          0, 1
// HAS_RESIDUAL         1 if the epilogue adds a residual r                                0
// EPILOGUE(v, r)       the epilogue of a sum v
// A_BATCH(i), B_BATCH(i)   where the matrices of batch i begin
// A_STORED and so on   types of A, B, C and the residual (common/storage.clh)             0
//
// Work-group: one tile of one batch, for one part of k: one of two buffers is read while the next fills. A work-item has its
// blocks 4 * TY rows and 4 * TX columns apart, so that neighbours read adjacent float4. With several parts group z sums
// steps [z / batches * k_part, ...) to C part z, and finish.cl adds the parts in order.
// Local memory: 8 * BK * (BM + BN + 8) bytes.
#include "common/storage_fours.clh"
#define TILE_GAP 4
#include "matrix/float_tile.clh"

#define QUADS_A (BM * BK / 4 / THREADS)
#define QUADS_B (BN * BK / 4 / THREADS)

// Four elements from `at`, of which limit - along exist; none where !inside.
#define LOAD4(X)                                                                                                     \
    inline float4 X##_load4(global const X##_T* x, ulong at, int along, int limit, int inside, int aligned) {        \
        float4 v = (float4)(0.0f);                                                                                   \
        if (inside && along < limit) {                                                                               \
            if (along + 4 <= limit) {                                                                                \
                v = aligned ? X##_ALIGNED_FOURS(x + at) : X##_FOURS(x + at);                                          \
            } else {                                                                                                 \
                v.x = X##_AT(x, at);                                                                                 \
                if (along + 1 < limit) v.y = X##_AT(x, at + 1);                                                      \
                if (along + 2 < limit) v.z = X##_AT(x, at + 2);                                                      \
            }                                                                                                        \
        }                                                                                                            \
        return v;                                                                                                    \
    }
LOAD4(A)
LOAD4(B)

inline float finish(float v, ulong at, int column, int has_bias, global const float* bias, global const R_T* residual) {
    if (has_bias) v += bias[column];
#if HAS_RESIDUAL
    const float r = R_AT(residual, at);
#endif
    EPILOGUE(v, r)
    return v;
}

// Statements of the kernel, on its locals.

// Where quad q of a tile lies: `line` is the row of A or column of B, `step` the step of k.
#define PLACE(q, transposed, lines, line, step)                                   \
    const int e_##line = (q)*THREADS + id;                                        \
    const int line = transposed ? e_##line % (lines / 4) * 4 : e_##line / (BK / 4); \
    const int step = transposed ? e_##line / (lines / 4) : e_##line % (BK / 4) * 4;
#define FETCH(k0)                                                                                                   \
    _Pragma("unroll") for (int q = 0; q < QUADS_A; ++q) {                                                           \
        PLACE(q, TA, BM, line, step)                                                                                \
        const int row = row0 + line, p = (k0) + step;                                                               \
        a_next[q] = TA ? A_load4(a, a_at + (ulong)p * lda + row, row, m, p < k_end, a_aligned)                        \
                       : A_load4(a, a_at + (ulong)row * lda + p, p, k_end, row < m, a_aligned);                       \
    }                                                                                                               \
    _Pragma("unroll") for (int q = 0; q < QUADS_B; ++q) {                                                           \
        PLACE(q, !TB, BN, line, step)                                                                               \
        const int column = column0 + line, p = (k0) + step;                                                         \
        b_next[q] = TB ? B_load4(b, b_at + (ulong)column * ldb + p, p, k_end, column < n, b_aligned)                  \
                       : B_load4(b, b_at + (ulong)p * ldb + column, column, n, p < k_end, b_aligned);                 \
    }
#define KEEP(buffer)                                                                       \
    _Pragma("unroll") for (int q = 0; q < QUADS_A; ++q) {                                  \
        PLACE(q, TA, BM, line, step)                                                       \
        local float* to = a_tile + (buffer)*BK * LDA + step * LDA + line;                  \
        if (TA)                                                                            \
            *(local float4*)to = a_next[q];                                                \
        else                                                                               \
            to[0] = a_next[q].x, to[LDA] = a_next[q].y, to[2 * LDA] = a_next[q].z, to[3 * LDA] = a_next[q].w; \
    }                                                                                      \
    _Pragma("unroll") for (int q = 0; q < QUADS_B; ++q) {                                  \
        PLACE(q, !TB, BN, line, step)                                                      \
        local float* to = b_tile + (buffer)*BK * LDB + step * LDB + line;                  \
        if (!TB)                                                                           \
            *(local float4*)to = b_next[q];                                                \
        else                                                                               \
            to[0] = b_next[q].x, to[LDB] = b_next[q].y, to[2 * LDB] = b_next[q].z, to[3 * LDB] = b_next[q].w; \
    }

kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void matmul_tiled(
    global const A_T* a, ulong a_offset, global const B_T* b, ulong b_offset, global const float* bias,
    ulong bias_offset, global const R_T* residual, ulong residual_offset, global C_T* c, ulong c_offset, int m,
    int n, int k, int k_part, int tiles_m, int tiles_n, int batches, long a_batch, long b_batch, float alpha, int has_bias) {
    local float a_tile[2 * BK * LDA] __attribute__((aligned(16)));
    local float b_tile[2 * BK * LDB] __attribute__((aligned(16)));
    const int id = get_local_id(0), tx = id % TX, ty = id / TX;
    const int tiles = tiles_m * tiles_n;
    const int z = get_group_id(0) / tiles, tile = get_group_id(0) % tiles;
    const int row0 = tile / tiles_n * BM, column0 = tile % tiles_n * BN;
    const long batch = z % batches;
    const int k_begin = z / batches * k_part, k_end = min(k, k_begin + k_part);
    const ulong a_at = a_offset + A_BATCH(batch), b_at = b_offset + B_BATCH(batch);
    const int lda = TA ? m : k, ldb = TB ? k : n;
    const int a_aligned = ((a_at | lda) & 3) == 0, b_aligned = ((b_at | ldb) & 3) == 0;

    float4 a_next[QUADS_A], b_next[QUADS_B];
    float4 sum[4 * GM][GN];
    TILE_CLEAR

    FETCH(k_begin)
    KEEP(0)
    barrier(CLK_LOCAL_MEM_FENCE);
    int buffer = 0;
    for (int k0 = k_begin; k0 < k_end; k0 += BK) {
        const int more = k0 + BK < k_end;
        if (more) { FETCH(k0 + BK) }
        TILE_MULTIPLY(buffer)
        buffer ^= 1;
        if (more) { KEEP(buffer) }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    const ulong c_at = (ulong)z * m * n;
    bias += bias_offset;
    residual += residual_offset + c_at;
    c += c_offset + c_at;
    const int c_aligned = ((c_offset | c_at | n) & 3) == 0;
#pragma unroll
    for (int i = 0; i < 4 * GM; ++i) {
        const int row = row0 + i / 4 * 4 * TY + ty * 4 + i % 4;
        if (row >= m) continue;
#pragma unroll
        for (int j = 0; j < GN; ++j) {
            const int column = column0 + j * 4 * TX + tx * 4;
            if (column >= n) continue;
            const ulong at = (ulong)row * n + column;
            float4 v = alpha * sum[i][j];
            v.x = finish(v.x, at, column, has_bias, bias, residual);
            if (column + 1 < n) v.y = finish(v.y, at + 1, column + 1, has_bias, bias, residual);
            if (column + 2 < n) v.z = finish(v.z, at + 2, column + 2, has_bias, bias, residual);
            if (column + 3 < n) v.w = finish(v.w, at + 3, column + 3, has_bias, bias, residual);
            if (column + 4 <= n && c_aligned) {
                C_PUT_ALIGNED_FOURS(c + at, v);
            } else {
                C_PUT(c, at, v.x);
                if (column + 1 < n) C_PUT(c, at + 1, v.y);
                if (column + 2 < n) C_PUT(c, at + 2, v.z);
                if (column + 3 < n) C_PUT(c, at + 3, v.w);
            }
        }
    }
}
