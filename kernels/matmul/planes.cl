// SPDX-License-Identifier: MIT
// matmul.wgmma_matrix_planes (mma_matrix_planes), second kernel: the product of operands that planes_pack.cl split.
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
// Work-group: one tile, for one part of K (blocks_part blocks of 64), by the pipeline of planes_pipeline.clh: a step comes to
// local memory by asynchronous copies of 16 bytes, and nothing else touches it. With several parts of K, group z of a tile
// writes C part z, and finish.cl adds them in order. `rows_first`: groups go through the rows first, so that they share
// columns of B; else the other way round.
// Local memory: STAGES * (BM + 128) * 260 bytes (132 with PRODUCTS 1).
#include "common/storage.clh"
#include "matmul/finish_value.clh"
#include "matrix/planes.clh"

#define FACTORS (BM + BN)
#define BLOCK_BYTES (PLANES * 8192)

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
        if (id < (WM + 2) * 16) COPY_16(unscale_at + (stage) * FACTORS * 4 + id * 16, factors + (long)(t)*256)  \
    }

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void planes_product(
    global const uchar* planes, ulong planes_offset, global const float* bias, ulong bias_offset,
    global const R_T* residual, ulong residual_offset, global C_T* c, ulong c_offset, int m, int n, int blocks,
    int blocks_part, int tiles_m, int tiles_n, int rows_first, long a_factors, long b_planes, long b_factors, float alpha,
    int has_bias) {
    local uchar tiles[STAGES * STAGE] __attribute__((aligned(1024)));
    local float unscale[STAGES * FACTORS] __attribute__((aligned(16)));
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

#include "matrix/planes_pipeline.clh"

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
                const float v = sum[sum_at(q, half_, j)] * alpha;
                sum[sum_at(q, half_, j)] = finish(v, line + column, column, has_bias, bias, residual);
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
                const float4 v = (float4)(sum[sum_at(q, half_, 0)], sum[sum_at(q, half_, 1)], sum[sum_at(q, half_, 2)],
                                          sum[sum_at(q, half_, 3)]);
                if (column < n) *(global float4*)(c + line + column) = v;
                continue;
            }
#endif
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (column + j < n) C_PUT(c, line + column + j, sum[sum_at(q, half_, j)]);
        }
    }
}
