// SPDX-License-Identifier: MIT
// Copies the windows of plain images to blocked images [N, T/V, OH, OW, V], whose channels are the T = C*KH*KW taps of a kernel.
// Windows do not overlap. The gradient of the weights becomes that of a 1x1 convolution (conv2d_backward_filter.blocked_patches):
//
//     x, kernel 2x2               pixel (0, 0)      pixel (0, 1)
//     a b|c d|                    a b e f           c d g h          T channels, zeros up to whole blocks
//     e f|g h|       ->
//     ---+---+
//
// Define   meaning                                    example
// V        lanes of a vector = channels of a block    16
//
// Work-item: `rows_per_item` rows of windows. Work-group: one work-item. Local memory: none.
#include "common/inline.clh"
#include "common/vectors.clh"

// Copies the piece of a row of x that belongs to kernel row `tap0` / kernel_w: `kernel_w` taps of each window.
INLINE void copy_row(global const float* from, global float* to, int tap0, int kernel_w, int out_w, ulong plane) {
    for (int k = 0; k < kernel_w;) {
        const int tap = tap0 + k;
        global float* lane = to + tap / V * plane + tap % V;
        if (tap % V == 0 && k + V <= kernel_w) {
            for (int column = 0; column < out_w; column++)
                AT(lane + column * V) = JOIN(vload, V)(0, from + column * kernel_w + k);
            k += V;
        } else {
            for (int column = 0; column < out_w; column++) lane[column * V] = from[column * kernel_w + k];
            k++;
        }
    }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void patches(global const float* x, ulong x_offset, global float* y, ulong y_offset, int rows, int rows_per_item, int channels,
             int x_h, int x_w, int out_h, int out_w, int kernel_h, int kernel_w)
{
    const int row0 = get_global_id(0) * rows_per_item, row1 = min(row0 + rows_per_item, rows);
    const int taps = channels * kernel_h * kernel_w, blocks = (taps + V - 1) / V;
    const ulong plane = (ulong)out_h * out_w * V;
    for (int row = row0; row < row1; row++) {
        const int n = row / out_h, oh = row % out_h;
        global float* to = y + y_offset + n * blocks * plane + (ulong)oh * out_w * V;
        for (int c = 0; c < channels; c++)
            for (int kh = 0; kh < kernel_h; kh++) {
                global const float* from = x + x_offset + (((ulong)n * channels + c) * x_h + oh * kernel_h + kh) * x_w;
                copy_row(from, to, (c * kernel_h + kh) * kernel_w, kernel_w, out_w, plane);
            }
        for (int tap = taps; tap < blocks * V; tap++)
            for (int column = 0; column < out_w; column++) to[tap / V * plane + column * V + tap % V] = 0.0f;
    }
}
