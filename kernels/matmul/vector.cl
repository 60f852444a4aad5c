// SPDX-License-Identifier: MIT
// matmul.vector: matrix products on CPUs, by register tiles of explicit vectors.
//
// A work-item computes up to TILES tiles of MR rows by NV*W columns, one below the other, with one panel of B. The last
// ones may have fewer rows (matmul/vector_tile.clh). It takes `k_block` steps of k at a time, so that these steps of the panel stay in the first-level cache:
//
//              panel of B: k steps of NV vectors of W floats
//   A: MR rows [ c0_0 c0_1 ]   MR*NV accumulators stay in registers over a block
//              [ c1_0 c1_1 ]
//
// B is packed: panel p holds columns [p*NR, p*NR+NR), NR = NV*W, as [k][NR], with zeros beyond column n. Row r and step p
// of tile t of A are at t * a_tile + r * a_row + p * a_k: A is read in place, or packed as [tile][k][MR].
//
// In the last block of k, the lines of C and of the residual that a tile's epilogue touches are prefetched, because they
// are short pieces of rows.
//
// With a single row each number of B is used once, and B comes from memory. Then B is prefetched AHEAD_LINES cache
// lines ahead, which keeps more reads under way than processors keep by themselves.
//
// Define                      meaning                                                     example
// W                           lanes of a vector                                           8
// NV, MR                      vectors and rows of a tile                                  2, 12
// TILES                       the most tiles of a work-item                               8
// HAS_RESIDUAL                whether the epilogue adds a tensor                          0
// EPILOGUE(v, r)              statements that apply the epilogue to v; r: the residual    v = v + r;
//
// Work-group: one work-item. Local memory: none.

#include "matmul/batch.clh"
#include "matmul/vector_tile.clh"

#define AHEAD_LINES 64

// Bias, epilogue and store of W elements of a row, of which `columns` exist.
inline void put(const float* lanes, float alpha, int has_bias, global float* c, global const float* bias,
                global const float* residual, int columns) {
    if (columns >= W) {
        vec v = alpha * VLOAD(0, lanes);
        if (has_bias) v += VLOAD(0, bias);
#if HAS_RESIDUAL
        const vec r = VLOAD(0, residual);
#endif
        EPILOGUE(v, r)
        VSTORE(v, 0, c);
        return;
    }
    for (int i = 0; i < columns; ++i) {
        float s = alpha * lanes[i];
        if (has_bias) s += bias[i];
#if HAS_RESIDUAL
        const float r = residual[i];
#endif
        EPILOGUE(s, r)
        c[i] = s;
    }
}

INLINE void read_vectors(global const float* from, vec* to) {
#pragma unroll
    for (int v = 0; v < NV; ++v) to[v] = VLOAD(v, from);
}

// Adds `steps` steps of k to the sums of `height` rows in `lanes`, or starts them. `rows` of the rows exist.
INLINE void add_steps(const int height, int rows, int start, int steps, global const float* a, long a_row, long a_k,
                      global const float* pb, float* lanes) {
    vec acc[MR][NV];
    FOR_SUMS(height) acc[r][v] = start ? (vec)(0.0f) : VLOAD(r * NV + v, lanes);
    global const float* lines[MR];
    FOR_ROWS(height) lines[r] = a + min(r, rows - 1) * a_row;
    long at = 0;
    for (int p = 0; p < steps; ++p) {
        if (height == 1) {
#pragma unroll
            for (int v = 0; v < NR; v += LINE_FLOATS) prefetch_line_far(pb + AHEAD_LINES * LINE_FLOATS + v);
        }
        vec b_now[NV];
        read_vectors(pb, b_now);
        FOR_ROWS(height) add_products(acc[r], (vec)(lines[r][at]), b_now);
        at += a_k;
        pb += NR;
    }
    FOR_SUMS(height) VSTORE(acc[r][v], r * NV + v, lanes);
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_vector(
    global const float* a, ulong a_offset, global const float* b, ulong b_offset, global const float* bias,
    ulong bias_offset, global const float* residual, ulong residual_offset, global float* c, ulong c_offset, int m,
    int n, int k, int k_block, long a_tile, long a_row, long a_k, long b_panel, int tiles, int batch_1, int batch_2, int batch_3,
    int batch_4, int batch_5, long a_0, long a_1, long a_2, long a_3, long a_4, long a_5,
    long b_0, long b_1, long b_2, long b_3, long b_4, long b_5, float alpha, int has_bias) {
    const int column = get_global_id(0) * NR;
    const long batch = get_global_id(2);
    const int first = get_global_id(1) * tiles * MR, last = min(first + tiles * MR, m);
    a += a_offset + A_BATCH(batch);
    b += b_offset + B_BATCH(batch) + get_global_id(0) * b_panel;
    c += c_offset + (ulong)batch * m * n + column;
    bias += bias_offset;
    residual += residual_offset + (ulong)batch * m * n + column;
    float sums[TILES * MR * NR];
    for (int k0 = 0; k0 == 0 || k0 < k; k0 += k_block) {
        const int steps = min(k_block, k - k0);
        for (int row = first; row < last;) {
            const int height = tile_height(last - row), rows = min(height, last - row);
            float* lanes = sums + (row - first) * NR;
            if (k0 + steps >= k) fetch_ends(c, residual, row, row + rows, n);
            CALL_BY_HEIGHT(height, add_steps, rows, k0 == 0, steps,
                           a + row / MR * a_tile + row % MR * a_row + k0 * a_k, a_row, a_k, b + (long)k0 * NR, lanes);
            // The sums are in memory, so that bias, epilogue and edges are compiled once and not for each sum of a tile.
            for (int r = 0; k0 + steps >= k && r < rows; ++r) {
                const long at = (long)(row + r) * n;
                for (int v = 0; v < NV; ++v)
                    put(lanes + r * NR + v * W, alpha, has_bias, c + at + v * W, bias + column + v * W,
                        residual + at + v * W, n - column - v * W);
            }
            row += height;
        }
    }
}
