// SPDX-License-Identifier: MIT
// matmul.blocks: C = A W^T on CPUs, where the rows of W are GGUF's blocks (matrix/blocks.clh), which are unpacked on the way.
//
//                   one row of A                               several rows of A
//            W: NV rows, 16 weights at a time           W: NV rows of K_BLOCK weights, unpacked to local memory
//               | unpacked in registers                    | read by all of the work-item's rows of A
//               v                                          v
//     x  ->  NV vectors of 16 partial sums        MR rows -> MR x NV vectors of W partial sums
//
// With one row, the time is that of reading and unpacking W. With several, W is unpacked once for ROWS of them.
//
// Define                      meaning                                                     example
// BLOCK_TYPE, BLOCK_WEIGHTS,  the type of the blocks (matrix/blocks.clh)                  3, 32,
// BLOCK_BYTES, ANY_ALIGNMENT                                                              20, 1
// W                           lanes of a vector                                           8
// MR, NV                      rows and columns of a tile                                  6, 2
// ROWS                        the most rows of a work-item                                96
// K_BLOCK                     weights of a row that are unpacked at a time, a multiple    1024
//                             of BLOCK_WEIGHTS
// HAS_RESIDUAL                whether the epilogue adds a tensor                          0
// EPILOGUE(v, r)              statements that apply the epilogue to v; r: the residual    v = v + r;
//
// Work-group: one work-item. Local memory: NV * K_BLOCK floats with several rows, else none.
#include "matmul/blocks_put.clh"
#include "matmul/vector_tile.clh"
#include "matrix/blocks.clh"

#if W == 16
INLINE float across(vec x) {
    const float8 h = x.lo + x.hi;
    const float4 q = h.lo + h.hi;
    const float2 p = q.lo + q.hi;
    return p.x + p.y;
}
#elif W == 8
INLINE float across(vec x) {
    const float4 q = x.lo + x.hi;
    const float2 p = q.lo + q.hi;
    return p.x + p.y;
}
#else
INLINE float across(vec x) {
    const float2 p = x.lo + x.hi;
    return p.x + p.y;
}
#endif

/// sum + x * w, with the sixteen products folded to the lanes of a vector.
#if W == 16
INLINE vec add_sixteen(vec sum, float16 x, float16 w) {
    return add_product(sum, x, w);
}
INLINE vec folded(float16 x) {
    return x;
}
#elif W == 8
INLINE vec add_sixteen(vec sum, float16 x, float16 w) {
    return add_product(add_product(sum, x.lo, w.lo), x.hi, w.hi);
}
INLINE vec folded(float16 x) {
    return x.lo + x.hi;
}
#else
INLINE vec add_sixteen(vec sum, float16 x, float16 w) {
    const vec low = add_product(add_product(sum, x.lo.lo, w.lo.lo), x.lo.hi, w.lo.hi);
    return add_product(add_product(low, x.hi.lo, w.hi.lo), x.hi.hi, w.hi.hi);
}
INLINE vec folded(float16 x) {
    const float8 half_of = x.lo + x.hi;
    return half_of.lo + half_of.hi;
}
#endif

/// Sums of one row of A with NV rows of W, of which `columns` exist, to `sums`. Products with the numbers of a group are
/// summed before they are scaled, and its offset is a factor of the sum of its part of A.
INLINE void sum_row(global const float* a, global const uchar* b, long row_bytes, int columns, int k, float* sums) {
    global const uchar* from[NV];
    vec acc[NV];
#pragma unroll
    for (int v = 0; v < NV; ++v) {
        from[v] = b + min(v, columns - 1) * row_bytes;
        acc[v] = (vec)(0.0f);
    }
    for (int p = 0; p < k; p += BLOCK_WEIGHTS) {
#pragma unroll
        for (int group = 0; group < BLOCK_PARTS / BLOCK_SHARED; ++group) {
            float16 x[BLOCK_SHARED];
#pragma unroll
            for (int i = 0; i < BLOCK_SHARED; ++i) x[i] = vload16(0, a + p + (group * BLOCK_SHARED + i) * 16);
#if BLOCK_HAS_OFFSET
            const vec x_sum = BLOCK_SHARED == 1 ? folded(x[0]) : folded(x[0] + x[BLOCK_SHARED - 1]);
#endif
#pragma unroll
            for (int i = 0; i < BLOCK_SHARED; ++i) x[i] *= 1.0f / BLOCK_FACTOR(group * BLOCK_SHARED + i);
#pragma unroll
            for (int v = 0; v < NV; ++v) {
#if BLOCK_HAS_SCALE
                const float2 scale = block_scale(from[v], group);
                vec part = (vec)(0.0f);
#pragma unroll
                for (int i = 0; i < BLOCK_SHARED; ++i)
                    part = add_sixteen(part, x[i], block_numbers(from[v], group * BLOCK_SHARED + i));
                acc[v] = add_product(acc[v], part, (vec)(scale.x));
#if BLOCK_HAS_OFFSET
                acc[v] = add_product(acc[v], x_sum, (vec)(scale.y));
#endif
#else
                acc[v] = add_sixteen(acc[v], x[0], block_numbers(from[v], group));
#endif
            }
        }
#pragma unroll
        for (int v = 0; v < NV; ++v) from[v] += BLOCK_BYTES;
    }
#pragma unroll
    for (int v = 0; v < NV; ++v) sums[v] = across(acc[v]);
}

// Work-item: `columns` columns of C, whose A has one row.
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_blocks_row(
    global const float* a, ulong a_offset, global const uchar* b, ulong b_offset, global const float* bias, ulong bias_offset,
    global const float* residual, ulong residual_offset, global float* c, ulong c_offset, int n, int k, int columns, int has_bias) {
    const int first = get_global_id(0) * columns, last = min(n, first + columns);
    const long row_bytes = (long)(k / BLOCK_WEIGHTS) * BLOCK_BYTES;
    for (int column = first; column < last; column += NV) {
        float sums[NV];
        const int there = min(NV, last - column);
        sum_row(a + a_offset, b + b_offset + column * row_bytes, row_bytes, there, k, sums);
        for (int v = 0; v < there; ++v)
            put(sums[v], column + v, column + v, has_bias, c + c_offset, bias + bias_offset, residual + residual_offset);
    }
}

/// Adds the products of `height` rows of A, of which `rows` exist, and NV rows of `steps` weights to `sums`.
INLINE void add_tile(const int height, int rows, int k, int steps, global const float* a, local const float* weights, float* sums) {
    global const float* from[MR];
    vec acc[MR][NV];
    FOR_ROWS(height) from[r] = a + (long)min(r, rows - 1) * k;
    FOR_SUMS(height) acc[r][v] = (vec)(0.0f);
    for (int p = 0; p < steps; p += W) {
        vec w[NV];
#pragma unroll
        for (int v = 0; v < NV; ++v) w[v] = VLOAD(0, weights + v * K_BLOCK + p);
        FOR_ROWS(height) add_products(acc[r], VLOAD(0, from[r] + p), w);
    }
    FOR_SUMS(height) sums[r * NV + v] += across(acc[r][v]);
}

// Work-item (i, j): columns [j * columns, ...) of rows [i * ROWS, ...).
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_blocks_rows(
    global const float* a, ulong a_offset, global const uchar* b, ulong b_offset, global const float* bias, ulong bias_offset,
    global const float* residual, ulong residual_offset, global float* c, ulong c_offset, int m, int n, int k, int columns,
    int has_bias) {
    local float weights[NV * K_BLOCK];
    const int top = get_global_id(0) * ROWS, bottom = min(top + ROWS, m);
    const int first = get_global_id(1) * columns, last = min(n, first + columns);
    const long row_bytes = (long)(k / BLOCK_WEIGHTS) * BLOCK_BYTES;
    a += a_offset;
    b += b_offset;
    for (int column = first; column < last; column += NV) {
        const int there = min(NV, last - column);
        float sums[(ROWS + MR) * NV];
        for (int i = 0; i < (bottom - top + MR) * NV; ++i) sums[i] = 0.0f;
        for (int k0 = 0; k0 < k; k0 += K_BLOCK) {
            const int steps = min(K_BLOCK, k - k0);
            for (int v = 0; v < NV; ++v) {
                global const uchar* from = b + (column + min(v, there - 1)) * row_bytes + (long)(k0 / BLOCK_WEIGHTS) * BLOCK_BYTES;
                for (int p = 0; p < steps; p += BLOCK_WEIGHTS, from += BLOCK_BYTES)
#pragma unroll
                    for (int part = 0; part < BLOCK_PARTS; ++part)
                        vstore16(block_weights(from, part), 0, weights + v * K_BLOCK + p + 16 * part);
            }
            for (int row = top, height; row < bottom; row += height) {
                height = tile_height(bottom - row);
                CALL_BY_HEIGHT(height, add_tile, min(height, bottom - row), k, steps, a + (long)row * k + k0, weights,
                               sums + (row - top) * NV);
            }
        }
        for (int row = top; row < bottom; ++row)
            for (int v = 0; v < there; ++v)
                put(sums[(row - top) * NV + v], (long)row * n + column + v, column + v, has_bias, c + c_offset,
                    bias + bias_offset, residual + residual_offset);
    }
}
