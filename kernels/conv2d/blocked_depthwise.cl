// SPDX-License-Identifier: MIT
// conv2d.blocked_depthwise and conv2d_backward_data.blocked_depthwise: depthwise convolution on CPUs of blocked activations
// [N, C/V, H, W, V], where channels are lanes.
//
//     acc[p] += w * x[p * S + kw]        for 1 to 13 pixels of a row in registers, over kernel rows and columns
//
// Define   meaning                                          example
// V        lanes of a vector = channels of a block          16
// S        stride of columns                                1
// and the epilogue (src/engine/epilogue.hpp). Weights: [block, kernel row, kernel column, V].
//
// The columns from inner0 to inner1, of which there are none or at least tile_pixels, have kernels that stay inside the image. Other
// columns are computed one by one. The gradient of the data is computed as in blocked.cl: weights are flipped, and each phase
// of the stride is a launch, which writes every y_row_step rows and y_column_step columns.
//
// Work-item: `rows_per_item` rows of one block of one image. Work-group: one work-item. Local memory: none.
#include "common/mul_add.clh"
#include "common/vectors.clh"

// Not a function, since the epilogue reads parameters of the kernel.
#define FINISH(sum, place) \
    do { \
        const ulong at = place; \
        VEC v = sum; \
        EPILOGUE(v, at); \
        if ((block + 1) * V > channels) v = keep_lanes(v, channels - block * V); \
        AT(y + at) = v; \
    } while (0)

// The sums of `pixels` pixels from `column`. No program depends on the width of an image, so it has each of these sizes.
#define MULTIPLY_TILE(pixels) \
    case pixels: { \
        VEC acc[pixels]; \
        _Pragma("unroll") for (int p = 0; p < pixels; ++p) acc[p] = start; \
        for (int kh = 0; kh < kernel_h; kh++) { \
            const int h = h0 + kh * dilate_h; \
            if (h < 0 || h >= x_h) continue; \
            global const float* xp = x + ((ulong)h * x_w + column * stride_w - pad_w) * V; \
            global const float* wp = w + kh * kernel_w * V; \
            for (int kw = 0; kw < kernel_w; kw++, wp += V, xp += dilate_w * V) { \
                const VEC weight = vec_at(wp); \
                _Pragma("unroll") for (int p = 0; p < pixels; ++p) acc[p] = mul_add(weight, vec_at(xp + p * S * V), acc[p]); \
            } \
        } \
        _Pragma("unroll") for (int p = 0; p < pixels; ++p) \
            if (p >= skip) FINISH(acc[p], tile_at + (ulong)(p * y_column_step * V)); \
        break; \
    }

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void depthwise(global const float* x, ulong x_offset, global const float* w, ulong w_offset,
               global const float* bias, ulong bias_offset, global float* y, ulong y_offset, int row_items,
               int rows_per_item, int channels, int blocks, int x_h, int x_w, int y_h, int y_w, int y_row0,
               int y_column0, int y_row_step, int y_column_step, int has_bias, int out_h, int out_w,
               int inner0, int inner1, int tile_pixels, int kernel_h, int kernel_w, int stride_h,
               int stride_w, int pad_h, int pad_w, int dilate_h, int dilate_w EPILOGUE_PARAMETERS)
{
    const int id = get_global_id(0);
    const int row0 = id % row_items * rows_per_item, row1 = min(row0 + rows_per_item, out_h);
    const int plane = id / row_items, block = plane % blocks;
    x += x_offset + (ulong)plane * x_h * x_w * V;
    w += w_offset + (ulong)block * kernel_h * kernel_w * V;
    y += y_offset;
    bias += bias_offset;
    const VEC start = has_bias ? read_lanes(bias, block, channels) : (VEC)(0.0f);
    for (int row = row0; row < row1; row++) {
        const int h0 = row * stride_h - pad_h;
        const ulong row_at = (((ulong)plane * y_h + y_row0 + row * y_row_step) * y_w + y_column0) * V;
        for (int wanted = inner0; wanted < inner1; wanted += tile_pixels) {
            const int column = min(wanted, inner1 - tile_pixels), skip = wanted - column;
            const ulong tile_at = row_at + (ulong)(column * y_column_step) * V;
            switch (tile_pixels) {
                MULTIPLY_TILE(1)
                MULTIPLY_TILE(2)
                MULTIPLY_TILE(3)
                MULTIPLY_TILE(5)
                MULTIPLY_TILE(6)
                MULTIPLY_TILE(9)
                MULTIPLY_TILE(13)
            }
        }
        for (int column = inner0 > 0 ? 0 : inner1; column < out_w; column = column + 1 == inner0 ? inner1 : column + 1) {
            const int w0 = column * stride_w - pad_w;
            VEC acc = start;
            for (int kh = 0; kh < kernel_h; kh++) {
                const int h = h0 + kh * dilate_h;
                if (h < 0 || h >= x_h) continue;
                for (int kw = 0; kw < kernel_w; kw++) {
                    const int c = w0 + kw * dilate_w;
                    if (c >= 0 && c < x_w)
                        acc = mul_add(vec_at(w + (kh * kernel_w + kw) * V), vec_at(x + ((ulong)h * x_w + c) * V), acc);
                }
            }
            FINISH(acc, row_at + (ulong)(column * y_column_step) * V);
        }
    }
}
