// SPDX-License-Identifier: MIT
// matmul.blocks_few: C = A W^T with few rows of A on GPUs, where the rows of W are GGUF's blocks (matrix/blocks.clh).
//
// A line of LINE work-items goes along NC rows of W together. Four work-items share 32 weights, so that each step of a line reads
// 8 LINE weights that follow each other. There is one long line in a work-group if W has few rows, so that more bytes are on their
// way at a time.
//
//     weights 0-3   4-7    8-11   12-15  16-19  20-23  24-27  28-31
//     item    0     1      2      3      0      1      2      3          (F16, BF16: 0 0 1 1 2 2 3 3)
//
// Each work-item sums its own weights' products, and then the sums of a line are added in an order that depends on LINE alone.
//
// With NORMED (NormedProduct, src/ops/matmul/normed.hpp) the rows of A are those of RMSNorm, x * scale / sqrt(mean(x^2) + eps). A
// line reads all of a row anyway: it multiplies by the scale on the way and sums the squares beside the products, and the root
// is a factor of the sums in the end.
//
// With GATED a line has as many rows of `other` as of W, and the result is EPILOGUE(A W^T) * (A other^T):
//
//     sums of a line     W's row i, row i + 1, ..., other's row i, row i + 1, ...       NC in all
//
// Define                      meaning                                                     example
// LINE, LINES                 work-items of a line, and lines of a work-group             32, 4
// UNROLL                      steps that are compiled together                            1
// MR, NC                      the most rows of A of a work-group, and rows of W of a      1, 4
//                             line; MR * NC * LINES is at most 128
// NORMED, GATED               see above; else 0                                           0, 0
// HAS_RESIDUAL                whether the epilogue adds a tensor                          0
// EPILOGUE(v, r)              statements that apply the epilogue to v; r: the residual    v = v + r;
// and those of matrix/blocks.clh.
//
// Local memory: 4 * MR * NC * LINES * (LINE + 1) bytes, and with NORMED 4 * (MR * (LINE + 1) + LINE * LINES) more.
#include "matrix/block_fours.clh"

#define SUMS (MR * NC * LINES)         // of a work-group
#define PER_SUM (LINE * LINES / SUMS)  // work-items that add one up
#define COLUMNS (GATED ? NC / 2 : NC)  // of the result, of a line

INLINE float4 four_at(const int aligned, global const float* p) {
    return aligned ? *(global const float4*)p : vload4(0, p);
}

INLINE float sum_of(float4 v) {
    return (v.x + v.y) + (v.z + v.w);
}

/// Adds the products of a work-item's weights: of rows of A from a on, and of the rows of W that begin at `from`. With NORMED
/// also the squares of its part of A's rows.
INLINE void add_products(const int aligned, global const float* a, global const float* scales, global const uchar** from, int rows, int k,
                         int id, float sum[MR][NC], float squares[MR]) {
#if BLOCK_HAS_SCALE
    const int low_at = 4 * (id % 4), high_at = low_at + 16;  // of the 32 weights
#else
    const int low_at = 8 * (id % 4), high_at = low_at + 4;
#endif
#pragma unroll UNROLL
    for (int group = id / 4; group < k / 32; group += LINE / 4) {
        const int block = group / (BLOCK_WEIGHTS / 32), part = group % (BLOCK_WEIGHTS / 32) * 2;
        float4 low[NC], high[NC];
        float2 scale[NC];
#pragma unroll
        for (int j = 0; j < NC; ++j) {
            global const uchar* at = from[j] + (long)block * BLOCK_BYTES;
#if !BLOCK_HAS_SCALE
            const float8 both = eight_numbers(aligned, at, part + id % 4 / 2, id % 2);
            low[j] = both.lo;
            high[j] = both.hi;
#else
            low[j] = four_numbers(aligned, at, part, id % 4);
            high[j] = four_numbers(aligned, at, part + 1, id % 4);
            scale[j] = four_scale(aligned, at, part);
#if BLOCK_SHARED == 1
            const float2 next = four_scale(aligned, at, part + 1);
            low[j] = low[j] * scale[j].x + scale[j].y;
            high[j] = high[j] * next.x + next.y;
#endif
#endif
        }
#if NORMED
        const float4 scale_low = four_at(aligned, scales + 32 * group + low_at),
                     scale_high = four_at(aligned, scales + 32 * group + high_at);
#endif
#pragma unroll
        for (int r = 0; r < MR; ++r) {
            global const float* x = a + (long)min(r, rows - 1) * k + 32 * group;
            float4 x_low = four_at(aligned, x + low_at), x_high = four_at(aligned, x + high_at);
#if NORMED
            squares[r] += sum_of(x_low * x_low + x_high * x_high);
            x_low *= scale_low;
            x_high *= scale_high;
#endif
#if BLOCK_HAS_OFFSET && BLOCK_SHARED == 2
            const float x_sum = sum_of(x_low + x_high);
#endif
#pragma unroll
            for (int j = 0; j < NC; ++j) {
                const float products = sum_of(x_low * low[j] + x_high * high[j]);
#if BLOCK_HAS_SCALE && BLOCK_SHARED == 2
                sum[r][j] += scale[j].x * products;
#if BLOCK_HAS_OFFSET
                sum[r][j] += scale[j].y * x_sum;
#endif
#else
                sum[r][j] += products;
#endif
            }
        }
    }
}

// Work-group i + j * groups: COLUMNS * LINES columns from i * COLUMNS * LINES on, of MR rows from j * MR on.
kernel __attribute__((reqd_work_group_size(LINE * LINES, 1, 1))) void matmul_blocks_few(
    global const float* a, ulong a_offset, global const uchar* b, ulong b_offset, global const float* bias, ulong bias_offset,
    global const float* residual, ulong residual_offset, global const float* scales, ulong scales_offset, global const uchar* other,
    ulong other_offset, global float* c, ulong c_offset, int m, int n, int k, int groups, int has_bias, float eps) {
    local float sums[SUMS * (LINE + 1)];
    const int item = get_local_id(0), group = get_group_id(0), id = item % LINE, line = item / LINE;
    const int top = group / groups * MR, left = group % groups * COLUMNS * LINES;
    const long row_bytes = (long)(k / BLOCK_WEIGHTS) * BLOCK_BYTES;
    a += a_offset + (long)top * k;
    b += b_offset;
    int aligned = ((ulong)a & 15) == 0 && BLOCKS_ALIGNED(b, row_bytes);
#if NORMED
    local float square_sums[MR * (LINE + 1)], parts[LINE * LINES];
    scales += scales_offset;
    aligned = aligned && ((ulong)scales & 15) == 0;
#endif
#if GATED
    other += other_offset;
    aligned = aligned && BLOCKS_ALIGNED(other, row_bytes);
#endif
    global const uchar* from[NC];
    float sum[MR][NC], squares[MR];
#pragma unroll
    for (int j = 0; j < NC; ++j) {
        const long row = min(left + line * COLUMNS + j % COLUMNS, n - 1) * row_bytes;
        from[j] = (j < COLUMNS ? b : other) + row;
#pragma unroll
        for (int r = 0; r < MR; ++r) sum[r][j] = squares[r] = 0.0f;
    }
    if (aligned)
        add_products(1, a, scales, from, min(MR, m - top), k, id, sum, squares);
    else
        add_products(0, a, scales, from, min(MR, m - top), k, id, sum, squares);
#pragma unroll
    for (int r = 0; r < MR; ++r)
#pragma unroll
        for (int j = 0; j < NC; ++j) sums[((r * LINES + line) * NC + j) * (LINE + 1) + id] = sum[r][j];
#if NORMED
    // All lines have the same squares.
#pragma unroll
    for (int r = 0; r < MR; ++r)
        if (line == 0) square_sums[r * (LINE + 1) + id] = squares[r];
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    // Each work-item adds LINE / PER_SUM sums of a line, and the first of PER_SUM adds what they made.
    const int own = item / PER_SUM, part = item % PER_SUM, own_row = own / (NC * LINES);
    local float* own_sums = sums + own * (LINE + 1);
    float v = 0.0f, square = 0.0f;
    for (int i = part; i < LINE; i += PER_SUM) {
        v += own_sums[i];
#if NORMED
        square += square_sums[own_row * (LINE + 1) + i];
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    own_sums[part] = v;
#if NORMED
    parts[item] = square;
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part == 0) {
        for (int i = 1; i < PER_SUM; ++i) v += own_sums[i];
#if NORMED
        for (int i = 1; i < PER_SUM; ++i) square += parts[item + i];
        v *= rsqrt(square / k + eps);
#endif
    }
#if GATED
    if (part == 0) own_sums[0] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    const int row = top + own_row, column = left + own / NC % LINES * COLUMNS + own % NC;
    if (part > 0 || own % NC >= COLUMNS || row >= m || column >= n) return;
    if (has_bias) v += bias[bias_offset + column];
    const long at = (long)row * n + column;
#if HAS_RESIDUAL
    const float r = residual[residual_offset + at];
#endif
    EPILOGUE(v, r)
#if GATED
    v *= own_sums[COLUMNS * (LINE + 1)];
#endif
    c[c_offset + at] = v;
}
