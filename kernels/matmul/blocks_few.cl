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
// Define                      meaning                                                     example
// LINE, LINES                 work-items of a line, and lines of a work-group             32, 4
// UNROLL                      steps that are compiled together                            1
// MR, NC                      the most rows of A of a work-group, and rows of W of a      1, 4
//                             line; MR * NC * LINES is at most 128
// HAS_RESIDUAL                whether the epilogue adds a tensor                          0
// EPILOGUE(v, r)              statements that apply the epilogue to v; r: the residual    v = v + r;
// and those of matrix/blocks.clh.
//
// Local memory: 4 * MR * NC * LINES * (LINE + 1) bytes.
#include "matrix/block_fours.clh"

#define SUMS (MR * NC * LINES)         // of a work-group
#define PER_SUM (LINE * LINES / SUMS)  // work-items that add one up

INLINE float4 four_at(const int aligned, global const float* p) {
    return aligned ? *(global const float4*)p : vload4(0, p);
}

INLINE float sum_of(float4 v) {
    return (v.x + v.y) + (v.z + v.w);
}

/// Adds the products of a work-item's weights: of rows of A from a on, and of the rows of W that begin at `from`.
INLINE void add_products(const int aligned, global const float* a, global const uchar** from, int rows, int k, int id, float sum[MR][NC]) {
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
#pragma unroll
        for (int r = 0; r < MR; ++r) {
            global const float* x = a + (long)min(r, rows - 1) * k + 32 * group;
            const float4 x_low = four_at(aligned, x + low_at), x_high = four_at(aligned, x + high_at);
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

// Work-group i + j * groups: NC * LINES columns from i * NC * LINES on, of MR rows from j * MR on.
kernel __attribute__((reqd_work_group_size(LINE * LINES, 1, 1))) void matmul_blocks_few(
    global const float* a, ulong a_offset, global const uchar* b, ulong b_offset, global const float* bias, ulong bias_offset,
    global const float* residual, ulong residual_offset, global float* c, ulong c_offset, int m, int n, int k, int groups, int has_bias) {
    local float sums[SUMS * (LINE + 1)];
    const int item = get_local_id(0), group = get_group_id(0), id = item % LINE, line = item / LINE;
    const int top = group / groups * MR, left = group % groups * NC * LINES;
    const long row_bytes = (long)(k / BLOCK_WEIGHTS) * BLOCK_BYTES;
    a += a_offset + (long)top * k;
    b += b_offset;
    global const uchar* from[NC];
    float sum[MR][NC];
#pragma unroll
    for (int j = 0; j < NC; ++j) {
        from[j] = b + min(left + line * NC + j, n - 1) * row_bytes;
#pragma unroll
        for (int r = 0; r < MR; ++r) sum[r][j] = 0.0f;
    }
    if (((ulong)a & 15) == 0 && BLOCKS_ALIGNED(b, row_bytes))
        add_products(1, a, from, min(MR, m - top), k, id, sum);
    else
        add_products(0, a, from, min(MR, m - top), k, id, sum);
#pragma unroll
    for (int r = 0; r < MR; ++r)
#pragma unroll
        for (int j = 0; j < NC; ++j) sums[((r * LINES + line) * NC + j) * (LINE + 1) + id] = sum[r][j];
    barrier(CLK_LOCAL_MEM_FENCE);
    // Each work-item adds LINE / PER_SUM sums of a line, and the first of PER_SUM adds what they made.
    const int own = item / PER_SUM, part = item % PER_SUM;
    local float* own_sums = sums + own * (LINE + 1);
    float v = 0.0f;
    for (int i = part; i < LINE; i += PER_SUM) v += own_sums[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    own_sums[part] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part > 0) return;
    for (int i = 1; i < PER_SUM; ++i) v += own_sums[i];
    const int row = top + own / (NC * LINES), column = left + own % (NC * LINES);
    if (row >= m || column >= n) return;
    if (has_bias) v += bias[bias_offset + column];
    const long at = (long)row * n + column;
#if HAS_RESIDUAL
    const float r = residual[residual_offset + at];
#endif
    EPILOGUE(v, r)
    c[c_offset + at] = v;
}
