// SPDX-License-Identifier: MIT
// matmul.wgmma_split (mma_split): products of floats, or of operands in 16 bits in any mix, on tensor cores: operands are split
// into halves (halves.clh) while they are multiplied.
//
//             128 columns
//           +-------------------+
//   64 * WM |                   |   C[m, n] = alpha * op(A)[m, k] op(B)[k, n], 64 of K per step
//           |                   |   WM 2: warpgroups one above the other; WM 1: beside each other
//           +-------------------+
//
// Define               meaning                                                            example
// WM                   rows of the tile in 64                                             2
// PRODUCTS             3: exact float; 1: tf32, of upper halves alone (halves.clh)        3
// TA, TB               1 if A lies as [k, m], if B lies as [n, k]                          0, 1
// HAS_RESIDUAL         1 if the epilogue adds a residual r                                0
// EPILOGUE(v, r)       the epilogue of a sum v
// A_BATCH(i), B_BATCH(i)   where the matrices of batch i begin
// A_STORED and so on   types of A, B, C and the residual (common/storage.clh)             0
// MMA                  see unit.clh                                                       0
//
// Work-group: one tile of one batch, for one part of K. While the unit multiplies a step, the work-items split the next one,
// which came to registers a step before:
//   operand with K along its lines     a warp reads 64 of K of its lines (BM / 8 or 16 of them), which share a scale
//   operand with K across its lines    a warp reads 64 rows of A (columns of B) for some k; each row (column) has a scale
// Halves 2 i and 2 i + 1 of a line in local memory are the elements i and i + 32 of 64, in K on both sides alike.
//
// Sums of 64 of K are the tensor core's; the rest is added in float outside of it, because the tensor core rounds toward
// zero. What is stored in 16 bits and is at least 2^-28 of its line's largest keeps all its bits in the upper halves. With
// several parts of K group z sums steps [z / batches * k_part, ...) to C part z, and finish.cl adds them in order.
// Local memory: 2 * (BM + 128) * 256 bytes (half of that with PRODUCTS 1), and about 10 KiB.
#include "common/storage.clh"
#include "matrix/split_tile.clh"

// Lines along K: those of a warp, of a tile of `rows`.
#define LINES(rows) ((rows) / 8)
// Lines along rows: warps that share 64 rows, and the k of each.
#define SHARE(rows) (512 / (rows))
#define DEPTHS(rows) ((rows) / 8)
// Row of local memory for k, element of 64 for a half.
INLINE int k_place(int k) {
    return (k & 31) * 2 + (k >> 5);
}
INLINE int element_of(int half_) {
    return (half_ >> 1) + (half_ & 1) * 32;
}

// Two elements of each of the warp's lines, of tile rows from `row0` on and K from `k0` on.
#define READ_ALONG_K(X, next, x, rows, row0, limit, k0)                                                       \
    {                                                                                                         \
        const int row_ = (row0) + warp * LINES(rows), k_ = (k0) + lane;                                       \
        global const X##_T* from = (x) + ((ulong)row_ * k + k_);                                              \
        _Pragma("unroll") for (int i = 0; i < LINES(rows); ++i) {                                             \
            next[2 * i] = row_ + i < (limit) && k_ < k_end ? X##_AT(from, (ulong)i * k) : 0.0f;               \
            next[2 * i + 1] = row_ + i < (limit) && k_ + 32 < k_end ? X##_AT(from, (ulong)i * k + 32) : 0.0f; \
        }                                                                                                     \
    }
#define READ_ACROSS_K(X, next, x, rows, row0, limit, k0)                                                    \
    {                                                                                                       \
        const int row_ = (row0) + warp / SHARE(rows) * 64 + lane, k_ = (k0) + warp % SHARE(rows);           \
        global const X##_T* from = (x) + ((ulong)k_ * (limit) + row_);                                      \
        _Pragma("unroll") for (int i = 0; i < DEPTHS(rows); ++i) {                                          \
            const int inside = k_ + i * SHARE(rows) < k_end;                                                \
            next[2 * i] = inside && row_ < (limit) ? X##_AT(from, (ulong)i * SHARE(rows) * (limit)) : 0.0f; \
            next[2 * i + 1] =                                                                               \
                inside && row_ + 32 < (limit) ? X##_AT(from, (ulong)i * SHARE(rows) * (limit) + 32) : 0.0f; \
        }                                                                                                   \
    }
// The largest magnitudes that a work-item sees, to `most`, for the others to see.
#define LOOK_ALONG_K(next, rows, largest, most)                                                      \
    {                                                                                                \
        float most_ = 0;                                                                             \
        _Pragma("unroll") for (int i = 0; i < 2 * LINES(rows); ++i) most_ = fmax(most_, fabs(next[i])); \
        most.x = most.y = warp_max(as_uint(most_));                                                  \
    }
#define LOOK_ACROSS_K(next, rows, largest, most)                                                     \
    {                                                                                                \
        float most0_ = 0, most1_ = 0;                                                                \
        _Pragma("unroll") for (int i = 0; i < DEPTHS(rows); ++i) {                                   \
            most0_ = fmax(most0_, fabs(next[2 * i]));                                                \
            most1_ = fmax(most1_, fabs(next[2 * i + 1]));                                            \
        }                                                                                            \
        *(local uint2*)((largest) + warp % SHARE(rows) * (rows) + warp / SHARE(rows) * 64 + lane * 2) = \
            (uint2)(as_uint(most0_), as_uint(most1_));                                               \
    }
// Halves to local memory at `to`, with what undoes their scale to `unscales`.
#define STORE_HALVES(next, i, s0, s1, at, apart)                            \
    {                                                                       \
        const float a_ = next[2 * (i)] * (s0), b_ = next[2 * (i) + 1] * (s1); \
        SPLIT_STORE(a_, b_, at, (at) + (apart))                             \
    }
#define KEEP_ALONG_K(next, rows, largest, most, to, apart, unscales, UNSCALE)                                    \
    {                                                                                                   \
        const float scale = split_scale(most.x);                                                        \
        if (lane < LINES(rows)) (unscales)[warp * LINES(rows) + lane] = UNSCALE(most.x);          \
        local uchar* line = (to) + warp * LINES(rows) * 128 + (lane & 3) * 4;                           \
        _Pragma("unroll") for (int i = 0; i < LINES(rows); ++i)                                         \
            STORE_HALVES(next, i, scale, scale, line + unit_at(i, lane >> 2), apart)                   \
    }
#define KEEP_ACROSS_K(next, rows, largest, most, to, apart, unscales, UNSCALE)                                   \
    {                                                                                                   \
        const int block = warp / SHARE(rows), first_k = warp % SHARE(rows), row = block * 64 + lane * 2; \
        uint2 most_ = (uint2)(0);                                                                       \
        _Pragma("unroll") for (int i = 0; i < SHARE(rows); ++i)                                         \
            most_ = max(most_, *(local const uint2*)((largest) + i * (rows) + row));                    \
        const float s0 = split_scale(most_.x), s1 = split_scale(most_.y);                               \
        if (first_k == 0) {                                                                             \
            (unscales)[row] = UNSCALE(most_.x);                                                   \
            (unscales)[row + 1] = UNSCALE(most_.y);                                               \
        }                                                                                               \
        local uchar* line = (to) + block * 8192 + (lane & 3) * 4;                                       \
        _Pragma("unroll") for (int i = 0; i < DEPTHS(rows); ++i)                                        \
            STORE_HALVES(next, i, s0, s1, line + unit_at(k_place(first_k + i * SHARE(rows)), lane >> 2), apart) \
    }

#if TA
#define READ_A READ_ACROSS_K
#define LOOK_A LOOK_ACROSS_K
#define KEEP_A KEEP_ACROSS_K
#define A_TILE UNIT_COLUMNS
#define A_STEP UNIT_STEP(2048)
#else
#define READ_A READ_ALONG_K
#define LOOK_A LOOK_ALONG_K
#define KEEP_A KEEP_ALONG_K
#define A_TILE UNIT_ROWS
#define A_STEP UNIT_STEP(32)
#endif
#if TB
#define READ_B READ_ALONG_K
#define LOOK_B LOOK_ALONG_K
#define KEEP_B KEEP_ALONG_K
#define B_TILE UNIT_ROWS
#define B_STEP UNIT_STEP(32)
#define B_WAY 0
#else
#define READ_B READ_ACROSS_K
#define LOOK_B LOOK_ACROSS_K
#define KEEP_B KEEP_ACROSS_K
#define B_TILE UNIT_COLUMNS
#define B_STEP UNIT_STEP(2048)
#define B_WAY 1
#endif

// Row of A and column of B of a half of local memory.
INLINE int a_row(int half_) {
    return TA ? half_ / 64 * 64 + element_of(half_ % 64) : half_;
}
INLINE int b_column(int half_) {
    return TB ? half_ : half_ / 64 * 64 + element_of(half_ % 64);
}

// Statements of the kernel, on its locals.

#define READ(t)                                       \
    READ_A(A, next_a, a, BM, m0, m, k_begin + (t)*64) \
    READ_B(B, next_b, b, BN, n0, n, k_begin + (t)*64)
#define LOOK                                              \
    LOOK_A(next_a, BM, largest_a, most_a)                 \
    LOOK_B(next_b, BN, largest_b, most_b)                 \
    barrier(CLK_LOCAL_MEM_FENCE);
#define KEEP_BOTH(stage)                                                                                             \
    KEEP_A(next_a, BM, largest_a, most_a, tiles + (stage)*STAGE, A_PLANE, unscale_a + (stage)*BM, split_unscale)     \
    KEEP_B(next_b, BN, largest_b, most_b, tiles + (stage)*STAGE + PLANES * A_PLANE, B_PLANE, unscale_b + (stage)*BN, \
           split_unscale_cut)
#define MULTIPLY_STEP                                                                                                \
    MULTIPLY(A_TILE(at + row_bytes), A_TILE(at + A_PLANE + row_bytes), B_TILE(at + PLANES * A_PLANE + column_bytes), \
             B_TILE(at + PLANES * A_PLANE + B_PLANE + column_bytes), TA, B_WAY)

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void matmul_split(
    global const A_T* a, ulong a_offset, global const B_T* b, ulong b_offset, global const float* bias,
    ulong bias_offset, global const R_T* residual, ulong residual_offset, global C_T* c, ulong c_offset, int m,
    int n, int k, int k_part, int tiles_m, int tiles_n, int batches, long a_batch, long b_batch, float alpha,
    int has_bias) {
    local uchar tiles[2 * STAGE] __attribute__((aligned(1024)));
    local float unscale_a[2 * BM], unscale_b[2 * BN] __attribute__((aligned(8)));
    local uint largest_a[512] __attribute__((aligned(8))), largest_b[512] __attribute__((aligned(8)));
    const uint tiles_at = (uint)tiles;
    const int id = get_local_id(0), warp = id >> 5, lane = id & 31, warpgroup = id >> 7;
    const int z = (int)get_group_id(0) / (tiles_m * tiles_n), tile = (int)get_group_id(0) % (tiles_m * tiles_n);
    const int m0 = tile % tiles_m * BM, n0 = tile / tiles_m * BN;
    const long batch = z % batches;
    const int k_begin = z / batches * k_part, k_end = min(k, k_begin + k_part);
    const int steps = (k_end - k_begin + 63) / 64;
    a += a_offset + A_BATCH(batch);
    b += b_offset + B_BATCH(batch);

    float next_a[BM / 4], next_b[BN / 4], sum[SUMS], product[SUMS];
    uint2 most_a = (uint2)(0), most_b = (uint2)(0);
#pragma unroll
    for (int i = 0; i < SUMS; ++i) sum[i] = product[i] = 0;
    if (steps > 0) {
        READ(0)
        LOOK
        KEEP_BOTH(0)
        READ(1)
        UNIT_FENCE
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int t = 0; t < steps; ++t) {
        const int stage = t & 1;
        const uint at = tiles_at + stage * STAGE;
        const int row_bytes = (WM == 2 ? warpgroup : 0) * 8192, column_bytes = (WM == 2 ? 0 : warpgroup) * 8192;
        UNIT_EARLY(MULTIPLY_STEP)
        if (t + 1 < steps) {
            LOOK
            KEEP_BOTH(1 - stage)
            READ(t + 2)
            UNIT_FENCE
        }
        UNIT_LATE(MULTIPLY_STEP)
        UNIT_WAIT(product)
        const int row = (WM == 2 ? warpgroup * 64 : 0) + (warp & 3) * 16 + (lane >> 2);
        const float r0 = unscale_a[stage * BM + row], r1 = unscale_a[stage * BM + row + 8];
        local const float* factors = unscale_b + stage * BN + (WM == 2 ? 0 : warpgroup * 64) + (lane & 3) * 2;
#pragma unroll
        for (int i = 0; i < SUMS / 4; ++i) {
            const float2 f = *(local const float2*)(factors + 8 * i);
            sum[4 * i] = fma(product[4 * i] * r0, f.x, sum[4 * i]);
            sum[4 * i + 1] = fma(product[4 * i + 1] * r0, f.y, sum[4 * i + 1]);
            sum[4 * i + 2] = fma(product[4 * i + 2] * r1, f.x, sum[4 * i + 2]);
            sum[4 * i + 3] = fma(product[4 * i + 3] * r1, f.y, sum[4 * i + 3]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    bias += bias_offset;
    residual += residual_offset;
    c += c_offset;
#pragma unroll
    for (int e = 0; e < SUMS; ++e) {
        const int row = m0 + a_row((WM == 2 ? warpgroup * 64 : 0) + (warp & 3) * 16 + (lane >> 2) + (e >> 1 & 1) * 8);
        const int column = n0 + b_column((WM == 2 ? 0 : warpgroup * 64) + (e >> 2) * 8 + (lane & 3) * 2 + (e & 1));
        if (row < m && column < n) {
            const ulong to = ((ulong)z * m + row) * n + column;
            float v = sum[e] * alpha;
            if (has_bias) v += bias[column];
#if HAS_RESIDUAL
            const float r = R_AT(residual, to);
#endif
            EPILOGUE(v, r)
            C_PUT(c, to, v);
        }
    }
}
