// SPDX-License-Identifier: MIT
// Depthwise convolution 3x3 of stride 1 whose output is as large as its input, for CPUs over blocked activations
// [N, C/V, H, W, V]: channels are lanes, one work-item, all nine weights in registers.
//
// Column by column of a row, three vectors of x are read, and what they give to the columns before, at and behind their
// own is added up: 9 multiply-adds and 3 reads a column, and the image's left and right borders are columns like others.
// The three sums of a column do not wait for each other; `before` and `own` carry them on to the next columns. A row of x
// above or below the image is zeros.
// A work-item makes `rows_per_item` rows of one block of one image. Weights: [block, 3, 3, V].
// Inputs: V, and the epilogue (src/engine/epilogue.hpp). Local memory: none.
#include "common/vectors.clh"

#define FINISH(column, sum) { const ulong at = row_at + (ulong)((column) * y_column_step * V); VEC v = sum; \
    EPILOGUE(v, at); if (partial) v = keep_lanes(v, channels - block * V); AT(y + at) = v; }
#define ADD(to, k) fma(x2, w##2##k, fma(x1, w##1##k, fma(x0, w##0##k, to)))
#define SUM(k) fma(x2, w##2##k, fma(x1, w##1##k, x0 * w##0##k))
#define READ_COLUMN(column) \
    const VEC x0 = above ? READ(xp + ((column) - x_w) * V) : (VEC)(0.0f), x1 = READ(xp + (column) * V), \
              x2 = below ? READ(xp + ((column) + x_w) * V) : (VEC)(0.0f);

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void depthwise3(global const float* x, ulong x_offset, global const float* w, ulong w_offset,
                global const float* bias, ulong bias_offset, global float* y, ulong y_offset, int row_items,
                int rows_per_item, int channels, int blocks, int x_h, int x_w, int y_h, int y_w, int y_row0,
                int y_column0, int y_row_step, int y_column_step, int has_bias EPILOGUE_PARAMETERS)
{
    const int id = get_global_id(0);
    const int row0 = id % row_items * rows_per_item, row1 = min(row0 + rows_per_item, x_h);
    const int plane = id / row_items, block = plane % blocks;
    const bool partial = (block + 1) * V > channels;
    x += x_offset + (ulong)plane * x_h * x_w * V;
    w += w_offset + (ulong)block * 9 * V;
    y += y_offset;
    bias += bias_offset;
    const VEC start = has_bias ? read_lanes(bias, block, channels) : (VEC)(0.0f);
    const VEC w00 = READ(w), w01 = READ(w + V), w02 = READ(w + 2 * V), w10 = READ(w + 3 * V), w11 = READ(w + 4 * V),
              w12 = READ(w + 5 * V), w20 = READ(w + 6 * V), w21 = READ(w + 7 * V), w22 = READ(w + 8 * V);
    for (int row = row0; row < row1; row++) {
        const bool above = row > 0, below = row + 1 < x_h;
        global const float* xp = x + (ulong)row * x_w * V;
        const ulong row_at = (((ulong)plane * y_h + y_row0 + row * y_row_step) * y_w + y_column0) * V;
        VEC before, own;
        {
            READ_COLUMN(0)
            before = ADD(start, 1);
            own = ADD(start, 0);
        }
        for (int column = 1; column < x_w; column++) {
            READ_COLUMN(column)
            const VEC sum = before + SUM(2);
            before = own + SUM(1);
            own = ADD(start, 0);
            FINISH(column - 1, sum)
        }
        FINISH(x_w - 1, before)
    }
}
