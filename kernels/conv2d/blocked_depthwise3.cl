// SPDX-License-Identifier: MIT
// conv2d.blocked_depthwise for 3x3 kernels with padding 1 and stride 1 or 2, on CPUs, of blocked activations
// [N, C/V, H, W, V]. Channels are lanes, and all nine weights stay in registers.
//
//     x:   | column - 1 | column | column + 1 |      three vectors (rows) per column are read once per row of y
//                 \         |         /
//     y:             sums of the columns that they reach: three with stride 1;
//                    with stride 2 one, or two for every second column
//
// Define   meaning                                          example
// V        lanes of a vector = channels of a block          16
// S        stride, 1 or 2                                   1
// AHEAD    floats by which x is prefetched                  2048
// and the epilogue (src/engine/epilogue.hpp). Weights: [block, 3, 3, V].
//
// The loop runs over the columns of x and adds each to the sums that it contributes to. So each vector of x is read once per
// row of y, the left and right borders of the image need no special code, and consecutive sums do not depend on each other.
// Rows of x above or below the image count as zeros; rows of y that need none are computed without checks. x is prefetched,
// because processors prefetch by themselves only within a page of 4 KiB.
//
// Work-item: `rows_per_item` rows of one block of one image. Work-group: one work-item. Local memory: none.
#include "common/mul_add.clh"
#include "common/vectors.clh"

#define FINISH(column, sum) { const ulong at = row_at + (ulong)((column) * V); VEC v = sum; EPILOGUE(v, at); AT(y + at) = v; }
#define ADD(to, k) mul_add(x2, w##2##k, mul_add(x1, w##1##k, mul_add(x0, w##0##k, to)))
#define SUM(k) mul_add(x2, w##2##k, mul_add(x1, w##1##k, x0 * w##0##k))
// A column of three rows, of which xp is the upper one. INNER: all are inside the image. BORDER: they need not be.
#define INNER(column) \
    const VEC x0 = vec_at(xp + (column) * V), x1 = vec_at(xp + row_step + (column) * V), \
              x2 = vec_at(xp + 2 * row_step + (column) * V);
#define BORDER(column) \
    const VEC x0 = above ? vec_at(xp + (column) * V) : (VEC)(0.0f), x1 = vec_at(xp + row_step + (column) * V), \
              x2 = below ? vec_at(xp + 2 * row_step + (column) * V) : (VEC)(0.0f);
#define SOON(row, column) prefetch_line(xp + (row) * row_step + (column) * V + AHEAD);
#if S == 1
#define ROW(COLUMN) { \
    VEC before, own; \
    { \
        COLUMN(0) \
        before = ADD(start, 1); \
        own = ADD(start, 0); \
    } \
    for (int column = 1; column < x_w; column++) { \
        SOON(2, column) \
        COLUMN(column) \
        const VEC sum = before + SUM(2); \
        before = own + SUM(1); \
        own = ADD(start, 0); \
        FINISH(column - 1, sum) \
    } \
    FINISH(x_w - 1, before) }
#else
#define ROW(COLUMN) { \
    VEC own = start; \
    for (int column = 0; column < x_w / 2; column++) { \
        SOON(2, 2 * column) \
        SOON(3, 2 * column) \
        VEC even, odd; \
        { \
            COLUMN(2 * column) \
            even = ADD(own, 1); \
        } \
        { \
            COLUMN(2 * column + 1) \
            odd = SUM(2); \
            own = ADD(start, 0); \
        } \
        FINISH(column, even + odd) \
    } \
    if (x_w % 2 == 1) { \
        COLUMN(x_w - 1) \
        FINISH(x_w / 2, ADD(own, 1)) \
    } }
#endif

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void depthwise3(global const float* x, ulong x_offset, global const float* w, ulong w_offset,
                global const float* bias, ulong bias_offset, global float* y, ulong y_offset, int row_items,
                int rows_per_item, int channels, int blocks, int x_h, int x_w, int y_h, int y_w, int has_bias EPILOGUE_PARAMETERS)
{
    const int id = get_global_id(0);
    const int row0 = id % row_items * rows_per_item, row1 = min(row0 + rows_per_item, y_h);
    const int plane = id / row_items, block = plane % blocks;
    x += x_offset + (ulong)plane * x_h * x_w * V;
    w += w_offset + (ulong)block * 9 * V;
    y += y_offset;
    bias += bias_offset;
    const VEC start = has_bias ? read_lanes(bias, block, channels) : (VEC)(0.0f);
    const VEC w00 = vec_at(w), w01 = vec_at(w + V), w02 = vec_at(w + 2 * V), w10 = vec_at(w + 3 * V), w11 = vec_at(w + 4 * V),
              w12 = vec_at(w + 5 * V), w20 = vec_at(w + 6 * V), w21 = vec_at(w + 7 * V), w22 = vec_at(w + 8 * V);
    const long row_step = (long)x_w * V;
    for (int row = row0; row < row1; row++) {
        const bool above = row > 0, below = row * S + 1 < x_h;
        global const float* xp = x + ((long)row * S - 1) * row_step;
        const ulong row_at = ((ulong)plane * y_h + row) * y_w * V;
        if (above && below) ROW(INNER) else ROW(BORDER)
        if ((block + 1) * V > channels)
            for (int column = 0; column < y_w; column++) {
                global float* p = y + row_at + column * V;
                AT(p) = keep_lanes(AT(p), channels - block * V);
            }
    }
}
