// SPDX-License-Identifier: MIT
// matmul.wgmma_halves (mma_halves), second kernel: the product of operands that halves_pack.cl split into halves.
//
//             128 columns
//           +-------------------+
//   64 * WM |                   |   C[m, n] = alpha * A[m, k] B[k, n], 64 of K per step
//           |                   |   WM 2: warpgroups one above the other; WM 1: beside each other
//           +-------------------+
//
// Define               meaning                                                            example
// WM                   rows of the tile in 64                                             2
// PRODUCTS             3: exact float; 1: tf32, of upper halves alone (halves.clh)        3
// STAGES               steps in local memory: one is multiplied, the others on their way  3
// C_FOURS              1 if C is float and has a multiple of four columns                 1
// HAS_RESIDUAL         1 if the epilogue adds a residual r                                0
// EPILOGUE(v, r)       the epilogue of a sum v
// C_STORED, R_STORED   types of C and the residual (common/storage.clh)                   0
// MMA                  see unit.clh                                                       0
//
// Work-group: one tile, for one part of K (blocks_part blocks of 64). A step comes to local memory by asynchronous copies of
// 16 bytes, and nothing else touches it. Sums of 64 of K are the tensor core's; the rest is added in float outside of it,
// because the tensor core rounds toward zero. With several parts of K, group z of a tile writes C part z, and finish.cl adds
// them in order. `rows_first`: groups go through the rows first, so that they share columns of B; else the other way round.
// Local memory: STAGES * (BM + 128) * 260 bytes (132 with PRODUCTS 1).
#include "common/inline.clh"
#include "common/storage.clh"
#include "matmul/finish_value.clh"
#include "matrix/copies.clh"
#include "matrix/split_tile.clh"

#define A_TILE(at) UNIT_ROWS(at)
#define A_STEP UNIT_STEP(32)
#define B_TILE(at) UNIT_ROWS(at)
#define B_STEP UNIT_STEP(32)
#define BLOCK_BYTES (PLANES * 8192)

// Until the copies of all but the last STAGES - 2 steps have arrived.
#if STAGES == 2
#define COPY_WAIT COPY_WAIT_BUT(0)
#elif STAGES == 3
#define COPY_WAIT COPY_WAIT_BUT(1)
#else
#define COPY_WAIT COPY_WAIT_BUT(2)
#endif

// A block of 64 lines to local address `to`, its lower halves `plane` bytes behind its upper ones.
#define COPY_BLOCK(to, plane, from)                                                                   \
    _Pragma("unroll") for (int i_ = 0; i_ < PLANES * 2; ++i_)                                         \
        COPY_16((to) + i_ / 2 * (plane) + i_ % 2 * 4096, (from) + i_ * 4096)
// A statement of the kernel, on its locals.
#define COPY(t, stage)                                                                                            \
    {                                                                                                             \
        const uint to_ = tiles_at + (stage)*STAGE + id * 16;                                                      \
        const long far_ = (long)(t)*BLOCK_BYTES + id * 16;                                                        \
        _Pragma("unroll") for (int w_ = 0; w_ < WM; ++w_) COPY_BLOCK(to_ + w_ * 8192, A_PLANE, a_from[w_] + far_) \
        _Pragma("unroll") for (int w_ = 0; w_ < 2; ++w_)                                                          \
            COPY_BLOCK(to_ + PLANES * A_PLANE + w_ * 8192, B_PLANE, b_from[w_] + far_)                            \
        if (id < (WM + 2) * 16) COPY_16(unscale_at + (stage) * (BM + BN) * 4 + id * 16, factors + (long)(t)*256)  \
    }

#define MULTIPLY_STEP MULTIPLY(A_TILE(a_at), A_TILE(a_at + A_PLANE), B_TILE(b_at), B_TILE(b_at + B_PLANE), 0, 0)

// Adds a step's products, scaled back: r0 and r1 for the two rows of a work-item, `of_columns` for every pair of columns.
INLINE void add_step(const float* product, float r0, float r1, local const float* of_columns, float* sum) {
#pragma unroll
    for (int i = 0; i < SUMS / 4; ++i) {
        const float2 f = *(local const float2*)(of_columns + 8 * i);
        sum[4 * i] = fma(product[4 * i] * r0, f.x, sum[4 * i]);
        sum[4 * i + 1] = fma(product[4 * i + 1] * r0, f.y, sum[4 * i + 1]);
        sum[4 * i + 2] = fma(product[4 * i + 2] * r1, f.x, sum[4 * i + 2]);
        sum[4 * i + 3] = fma(product[4 * i + 3] * r1, f.y, sum[4 * i + 3]);
    }
}

// Which of the sums is column j of quad q, of row `row + 8 * half_`.
#define SUM_AT(q, half_, j) (8 * (q) + 4 * ((j) >> 1) + 2 * (half_) + ((j)&1))

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void halves_product(
    global const uchar* planes, ulong planes_offset, global const float* bias, ulong bias_offset,
    global const R_T* residual, ulong residual_offset, global C_T* c, ulong c_offset, int m, int n, int blocks,
    int blocks_part, int tiles_m, int tiles_n, int rows_first, long a_factors, long b_planes, long b_factors, float alpha,
    int has_bias) {
    local uchar tiles[STAGES * STAGE] __attribute__((aligned(1024)));
    local float unscale[STAGES * (BM + BN)] __attribute__((aligned(16)));
    const uint tiles_at = (uint)tiles, unscale_at = (uint)unscale;
    const int id = get_local_id(0), warp = id >> 5, lane = id & 31, warpgroup = id >> 7;
    const int z = (int)get_group_id(0) / (tiles_m * tiles_n), tile = (int)get_group_id(0) % (tiles_m * tiles_n);
    const int tile_m = rows_first ? tile % tiles_m : tile / tiles_n, tile_n = rows_first ? tile / tiles_m : tile % tiles_n;
    const int m0 = tile_m * BM, n0 = tile_n * BN;
    const int first = z * blocks_part, last = min(blocks, first + blocks_part);

    // Blocks of lines beyond the last are read as the last ones; nobody stores their products.
    planes += planes_offset;
    const int last_a = (m - 1) / 64, last_b = (n - 1) / 64;
    global const uchar *a_from[WM], *b_from[2];
#pragma unroll
    for (int w = 0; w < WM; ++w) a_from[w] = planes + (long)min(tile_m * WM + w, last_a) * blocks * BLOCK_BYTES;
#pragma unroll
    for (int w = 0; w < 2; ++w) b_from[w] = planes + b_planes + (long)min(tile_n * 2 + w, last_b) * blocks * BLOCK_BYTES;
    // A work-item of the first ones copies four factors of a block of A or of B.
    const int part = id >> 4, of_b = part >= WM;
    const long block = (long)(of_b ? min(tile_n * 2 + part - WM, last_b) : min(tile_m * WM + part, last_a)) * blocks;
    global const uchar* factors = planes + (of_b ? b_factors : a_factors) + block * 256 + (id & 15) * 16;

    float sum[SUMS], product[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; ++i) sum[i] = product[i] = 0;
#pragma unroll
    for (int i = 0; i < STAGES - 1; ++i) {
        if (first + i < last) COPY(first + i, i)
        COPY_COMMIT
    }
    int stage = 0;
    for (int t = first; t < last; ++t) {
        COPY_WAIT
        UNIT_FENCE
        // Step t is there for all, and nobody reads step t - 1 any more.
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint a_at = tiles_at + stage * STAGE + (WM == 2 ? warpgroup * 8192 : 0);
        const uint b_at = tiles_at + stage * STAGE + PLANES * A_PLANE + (WM == 2 ? 0 : warpgroup * 8192);
        UNIT_EARLY(MULTIPLY_STEP)
        const int next = stage == 0 ? STAGES - 1 : stage - 1;
        if (t + STAGES - 1 < last) COPY(t + STAGES - 1, next)
        COPY_COMMIT
        UNIT_LATE(MULTIPLY_STEP)
        UNIT_WAIT(product)
        local const float* undo = unscale + stage * (BM + BN);
        const int row = (WM == 2 ? warpgroup * 64 : 0) + (warp & 3) * 16 + (lane >> 2);
        const float r0 = undo[row], r1 = undo[row + 8];
        add_step(product, r0, r1, undo + BM + (WM == 2 ? 0 : warpgroup * 64) + (lane & 3) * 2, sum);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }

    // Quad q of row `row + 8 * half_` is four columns beside each other. All that is read is read before anything is
    // written: the compiler cannot know that C is none of it.
    bias += bias_offset;
    residual += residual_offset;
    c += c_offset;
    const int row0 = m0 + (WM == 2 ? warpgroup * 64 : 0) + (warp & 3) * 16 + (lane >> 2);
    const int column0 = n0 + (WM == 2 ? 0 : warpgroup * 64) + (lane & 3) * 4;
#pragma unroll
    for (int half_ = 0; half_ < 2; ++half_) {
        const ulong line = ((ulong)z * m + min(row0 + 8 * half_, m - 1)) * n;
#pragma unroll
        for (int q = 0; q < SUMS / 8; ++q) {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int column = min(column0 + q * 16 + j, n - 1);
                const float v = sum[SUM_AT(q, half_, j)] * alpha;
                sum[SUM_AT(q, half_, j)] = finish(v, line + column, column, has_bias, bias, residual);
            }
        }
    }
#pragma unroll
    for (int half_ = 0; half_ < 2; ++half_) {
        const int row = row0 + 8 * half_;
        const ulong line = ((ulong)z * m + row) * n;
        if (row >= m) continue;
#pragma unroll
        for (int q = 0; q < SUMS / 8; ++q) {
            const int column = column0 + q * 16;
#if C_FOURS
            if ((c_offset & 3) == 0) {
                const float4 v = (float4)(sum[SUM_AT(q, half_, 0)], sum[SUM_AT(q, half_, 1)], sum[SUM_AT(q, half_, 2)],
                                          sum[SUM_AT(q, half_, 3)]);
                if (column < n) *(global float4*)(c + line + column) = v;
                continue;
            }
#endif
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (column + j < n) C_PUT(c, line + column + j, sum[SUM_AT(q, half_, j)]);
        }
    }
}
