// SPDX-License-Identifier: MIT
// matmul.subgroup: matrix products by sub-groups without local memory (common/subgroup.clh has the tile).
//
// A step of K: a lane has TN values of a row of B. A stored by rows: lanes hold SG steps of each row, read once for
// these steps; stored transposed: lanes hold the step's rows. B stored transposed: a lane reads four steps of each of
// its columns at a time. Rows and columns beyond C are those at its end again, and are not written.
//
// With several parts of K group z sums steps [z / batches * k_part, ...) into C part z; matmul_finish adds them in
// order. Defines: SG, TM, TN, GROUPS, TA, TB (stored transposed), HAS_RESIDUAL, EPILOGUE, A_BATCH, B_BATCH.
#include "common/inline.clh"
#include "common/storage_fours.clh"
#include "matmul/finish_value.clh"
#include "common/subgroup.clh"

// A lane's element of SG that follow each other.
inline float a_lane(global const A_T* from, int lane) {
#if A_STORED == 0
    return lane_float(from);
#else
    return A_AT(from, lane);
#endif
}

// The rows of one step of K of A stored transposed, over lanes. Unless all of them are there, `last` is the last.
INLINE void read_rows(global const A_T* from, int whole, int last, int lane, float* x) {
#pragma unroll
    for (int h = 0; h < ROW_READS; ++h) x[h] = whole ? a_lane(from + h * SG, lane) : A_AT(from, min(h * SG + lane, last));
}
// A lane's columns of the step of K that begins at `from`. `whole`: the tile's columns are all there, from column0 on.
INLINE void read_columns(global const B_T* from, int whole, int column0, const int* column, float* b_now) {
#if B_STORED == 0
    if (whole) {
        lane_floats(b_now, from + column0);
        return;
    }
#endif
#pragma unroll
    for (int j = 0; j < TN; ++j) b_now[j] = B_AT(from, column[j]);
}

// Step p of K as all lanes need it, in the kernel's locals: x where A is stored transposed, and b_now.
#if TA
#define READ_ROWS(p) read_rows(a + ((ulong)(p)*lda + row0), whole_rows, m - 1 - row0, lane, x);
#define A_VALUE(i) sub_group_broadcast(x[(i) / SG], (i) % SG)
#else
#define READ_ROWS(p)
#define A_VALUE(i) sub_group_broadcast(x[i], step)
#endif
#define READ_COLUMNS(p) read_columns(b + (ulong)(p)*ldb, whole_columns, column0, column, b_now);
// The step `e` of four whose values of B are in v.
#define STEP_OF_FOUR(e, lane_of_four)                                              \
    {                                                                              \
        const int step = four + e;                                                 \
        READ_ROWS(k0 + step)                                                       \
        _Pragma("unroll") for (int j = 0; j < TN; ++j) b_now[j] = v[j].lane_of_four; \
        SUMS_ADD(A_VALUE)                                                          \
    }

kernel __attribute__((reqd_work_group_size(GROUPS * SG, 1, 1))) __attribute__((intel_reqd_sub_group_size(SG))) void
matmul_subgroup(global const A_T* a, ulong a_offset, global const B_T* b, ulong b_offset, global const float* bias,
                ulong bias_offset, global const R_T* residual, ulong residual_offset, global C_T* c, ulong c_offset,
                int m, int n, int k, int k_part, int tiles_m, int tiles_n, int batches, long a_batch, long b_batch,
                float alpha, int has_bias) {
    const int lane = get_sub_group_local_id();
    const int tiles = tiles_m * tiles_n;
    const int z = get_group_id(0) / tiles, tile = get_group_id(0) % tiles;
    const int row0 = tile / tiles_n * BM + get_sub_group_id() * TM, column0 = tile % tiles_n * BN;
    const long batch = z % batches;
    const int k_begin = z / batches * k_part, k_end = min(k, k_begin + k_part);
    const int lda = TA ? m : k, ldb = TB ? k : n;
    if (row0 >= m) return;
    a += a_offset + A_BATCH(batch);
    b += b_offset + B_BATCH(batch);
    int column[TN];
#pragma unroll
    for (int j = 0; j < TN; ++j) column[j] = min(column0 + j * SG + lane, n - 1);
#if !TB
    const int whole_columns = column0 + BN <= n;
#endif
#if TA
    const int whole_rows = row0 + ROW_READS * SG <= m;
    float x[ROW_READS];
#else
    float x[TM];
#endif
    float sum[TM][TN], b_now[TN];
    SUMS_CLEAR

    int k0 = k_begin;
    for (; k0 + SG <= k_end; k0 += SG) {
#if !TA
#pragma unroll
        for (int i = 0; i < TM; ++i) x[i] = a_lane(a + ((ulong)min(row0 + i, m - 1) * lda + k0), lane);
#endif
#if TB
#pragma unroll
        for (int four = 0; four < SG; four += 4) {
            float4 v[TN];
#pragma unroll
            for (int j = 0; j < TN; ++j) v[j] = B_FOURS(b + ((ulong)column[j] * ldb + k0 + four));
            STEP_OF_FOUR(0, x)
            STEP_OF_FOUR(1, y)
            STEP_OF_FOUR(2, z)
            STEP_OF_FOUR(3, w)
        }
#else
#pragma unroll
        for (int step = 0; step < SG; ++step) {
            READ_ROWS(k0 + step)
            READ_COLUMNS(k0 + step)
            SUMS_ADD(A_VALUE)
        }
#endif
    }
    if (k0 < k_end) {
#if !TA
#pragma unroll
        for (int i = 0; i < TM; ++i) {
            global const A_T* from = a + ((ulong)min(row0 + i, m - 1) * lda + k0);
            x[i] = A_AT(from, min(lane, k_end - 1 - k0));
        }
#endif
        for (int step = 0; step < k_end - k0; ++step) {
            READ_ROWS(k0 + step)
#if TB
#pragma unroll
            for (int j = 0; j < TN; ++j) b_now[j] = B_AT(b, (ulong)column[j] * ldb + k0 + step);
#else
            READ_COLUMNS(k0 + step)
#endif
            SUMS_ADD(A_VALUE)
        }
    }

    const ulong c_at = (ulong)z * m * n;
    bias += bias_offset;
    residual += residual_offset + c_at;
    c += c_offset + c_at;
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        if (row0 + i >= m) break;
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int to = column0 + j * SG + lane;
            if (to < n) {
                const ulong at = (ulong)(row0 + i) * n + to;
                const float v = finish(alpha * sum[i][j], at, to, has_bias, bias, residual);
                C_PUT(c, at, v);
            }
        }
    }
}
