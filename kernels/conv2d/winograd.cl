// SPDX-License-Identifier: MIT
// conv2d.winograd, second of three kernels: a matrix product for each position of the tiles and each group of channels.
//
//     m [z][rows][v_row] = u [z][steps * BK][u_row] (transposed) times v [z][depth][v_row]
//
//              columns: tiles
//            +-----+-----+- -
//      rows: | BM x BN   |          matrix/float_tile.clh has the picture of the tile and its local memory
//    output  +-----+-----+- -
//   channels |     |     |
//
// z counts groups within positions, and depth counts input channels. The weights u are packed (winograd_pack.cl) and
// zero beyond the depth. v_row and u_row are multiples of four. Columns of m beyond the last tile contain no meaningful
// values.
//
// Define       meaning                                        example
// those of matrix/float_tile.clh
// DEPTH_TAIL   1 if the depth does not fill steps of BK       0
//
// Work-group: a BM x BN tile of m. The operands of the next step are loaded into registers while the current one is
// multiplied, with one barrier per step. Every `run` steps are summed separately and added to m, which keeps the error
// of long sums small. Work-groups are numbered by row tile, then column tile, then z.
#define TILE_GAP 0
#include "matrix/float_tile.clh"

#define A_QUADS (BM * BK / 4 / THREADS)
#define A_STEP (THREADS * 4 / BM)
#define B_QUADS (BN * BK / 4 / THREADS)
#define B_STEP (THREADS * 4 / BN)
// Rows whose sums are all read before they are written, because a compiler must assume that they overlap.
#define ROWS_TOGETHER 2

kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void winograd_multiply(
    global const float* u, ulong u_offset, global const float* v, ulong v_offset, global float* m, ulong m_offset,
    int rows, int depth, int u_row, int v_row, int steps, int run, int tiles_m, int tiles_n) {
    local float a_tile[2 * BK * LDA] __attribute__((aligned(16)));
    local float b_tile[2 * BK * LDB] __attribute__((aligned(16)));
    const int id = get_local_id(0), tx = tile_x(id), ty = tile_y(id);
    const int m0 = (int)get_group_id(0) % tiles_m * BM;
    const int n0 = (int)get_group_id(0) / tiles_m % tiles_n * BN;
    const int z = (int)get_group_id(0) / tiles_m / tiles_n;
    const int a_row = id / (BM / 4), a_column = id % (BM / 4) * 4;
    const int b_row = id / (BN / 4), b_column = id % (BN / 4) * 4;
    global const float* u_from =
        u + u_offset + ((ulong)z * steps * BK + a_row) * u_row + min(m0 + a_column, u_row - 4);
    global const float* v_from = v + v_offset + ((ulong)z * depth + b_row) * v_row + min(n0 + b_column, v_row - 4);
    m += m_offset + (ulong)z * rows * v_row;
    float4 a_next[A_QUADS], b_next[B_QUADS];

#if DEPTH_TAIL
#define FETCH_COLUMNS(step)                                                                 \
    _Pragma("unroll") for (int q = 0; q < B_QUADS; ++q) b_next[q] =                         \
        (step)*BK + b_row + q * B_STEP < depth                                              \
            ? *(global const float4*)(v_from + (ulong)(q * B_STEP) * v_row)                 \
            : (float4)(0.0f);
#else
#define FETCH_COLUMNS(step)                                         \
    _Pragma("unroll") for (int q = 0; q < B_QUADS; ++q) b_next[q] = \
        *(global const float4*)(v_from + (ulong)(q * B_STEP) * v_row);
#endif
#define FETCH(step)                                                    \
    _Pragma("unroll") for (int q = 0; q < A_QUADS; ++q) a_next[q] =    \
        *(global const float4*)(u_from + (ulong)(q * A_STEP) * u_row); \
    FETCH_COLUMNS(step)                                                \
    u_from += (ulong)BK * u_row;                                       \
    v_from += (ulong)BK * v_row;
#define KEEP(buffer)                                                                                    \
    _Pragma("unroll") for (int q = 0; q < A_QUADS; ++q) *                                               \
        (local float4*)(a_tile + ((buffer)*BK + a_row + q * A_STEP) * LDA + a_column) = a_next[q];      \
    _Pragma("unroll") for (int q = 0; q < B_QUADS; ++q) *                                               \
        (local float4*)(b_tile + ((buffer)*BK + b_row + q * B_STEP) * LDB + b_column) = b_next[q];

    float4 sum[4 * GM][GN];
    FETCH(0)
    KEEP(0)
    barrier(CLK_LOCAL_MEM_FENCE);
    int buffer = 0;
    for (int step = 0; step < steps;) {
        const int first = step, end = min(steps, step + run);
        TILE_CLEAR
        for (; step < end; ++step) {
            const bool more = step + 1 < steps;
            if (more) {
                FETCH(step + 1)
            }
            TILE_MULTIPLY(buffer)
            buffer ^= 1;
            if (more) {
                KEEP(buffer)
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        // `nothing` is 0, which a compiler cannot know. Otherwise it would keep all these addresses in registers
        // between runs.
        const int nothing = step >> 30, row = m0 + ty * 4 + nothing, column = n0 + tx * 4 + nothing;
        global float* const to = m + (ulong)row * v_row + column;
#pragma unroll
        for (int i0 = 0; i0 < 4 * GM; i0 += ROWS_TOGETHER) {
#define EACH(todo)                                                                                         \
    _Pragma("unroll") for (int i = i0; i < i0 + ROWS_TOGETHER; ++i)                                        \
        _Pragma("unroll") for (int j = 0; j < GN; ++j)                                                     \
            if (row + i / 4 * 4 * TY + i % 4 < rows && column + j * 4 * TX < v_row) {                      \
                global float4* const at = (global float4*)(to + (i / 4 * 4 * TY + i % 4) * v_row + j * 4 * TX); \
                todo                                                                                       \
            }
            if (first > 0) {
                EACH(sum[i][j] += *at;)
            }
            EACH(*at = sum[i][j];)
        }
    }
}
