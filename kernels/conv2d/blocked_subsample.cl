// SPDX-License-Identifier: MIT
// Copies every stride_h-th row and stride_w-th column of blocked images [planes, H, W, V] to smaller images. So a 1x1
// convolution with a stride becomes one without.
//
// Define   meaning                                          example
// V        lanes of a vector = channels of a block          16
//
// Work-item: `rows_per_item` rows. Work-group: one work-item. Local memory: none.
#include "common/vectors.clh"

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void subsample(global const float* x, ulong x_offset, global float* y, ulong y_offset, int rows, int rows_per_item,
               int x_h, int x_w, int out_h, int out_w, int stride_h, int stride_w)
{
    const int row0 = get_global_id(0) * rows_per_item, row1 = min(row0 + rows_per_item, rows);
    for (int row = row0; row < row1; row++) {
        global const float* from = x + x_offset + ((ulong)(row / out_h) * x_h + row % out_h * stride_h) * x_w * V;
        global float* to = y + y_offset + (ulong)row * out_w * V;
        for (int column = 0; column < out_w; column++) AT(to + column * V) = vec_at(from + column * stride_w * V);
    }
}
