// SPDX-License-Identifier: MIT
// conv2d.blocked_first: convolution on CPUs of a plain NCHW input of few channels (a network's first layer) to a blocked
// output [N, C/V, H, W, V].
//
//            P pixels of a row
//          +----+----+- -+----+
// O vectors|    |    |   |    |     acc[o][p] += w[o] * x[p * stride + kw]
// of V     +----+----+- -+----+         over channels, kernel rows and kernel columns
// channels |    |    |   |    |
//          +----+----+- -+----+     O * P accumulators, each in a register
//
// Define   meaning                                          example
// V        lanes of a vector = output channels of a block   16
// O, P     blocks of output channels and pixels of a tile   2, 14
// and the epilogue (src/engine/epilogue.hpp). Weights: [slab, channel, kh, kw, O*V], as blocked_pack.cl packs them with one
// input lane per block.
//
// A row is divided into tiles of `tile_pixels`: P, HALF or QUARTER pixels. The last one may have fewer.
//
// Work-item: `row_items` output rows with all output channels. For each row it first copies the input rows that it needs, with
// padding, to its part of `scratch` ([channels * kernel rows, row_length]).
// Work-group: one work-item. Local memory: none.
#include "common/vectors.clh"
#include "conv2d/blocked_first_rows.clh"
#include "conv2d/blocked_sums.clh"
#include "conv2d/tile_sizes.clh"

// Multiplies the taps of the first `pixels` pixels of a tile.
#define MULTIPLY_ROWS(pixels) \
    { \
        global const float* wp = slab; \
        for (int r = 0; r < channels * kernel_h; r++) { \
            global const float* xp = mine + r * row_length + column * stride_w; \
            for (int kw = 0; kw < kernel_w; kw++) { \
                VEC w_l[O]; \
                read_vectors(wp, V, w_l); \
                _Pragma("unroll") for (int p = 0; p < (pixels); ++p) add_products(acc + p, P, w_l, xp[p * stride_w]); \
                xp += dilate_w; \
                wp += O * V; \
            } \
        } \
    }

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv_first(global const float* x, ulong x_offset, global const float* w, ulong w_offset,
                global const float* bias, ulong bias_offset, global float* y, ulong y_offset,
                global float* scratch, ulong scratch_offset, int rows, int row_items,
                int channels, int x_h, int x_w, int out, int out_blocks, int out_h, int out_w, int kernel_h,
                int kernel_w, int stride_h, int stride_w, int tile_pixels, int pad_h, int pad_w, int dilate_h, int dilate_w, int row_length, int has_bias
                EPILOGUE_PARAMETERS)
{
    const int id = get_global_id(0);
    x += x_offset;
    w += w_offset;
    bias += bias_offset;
    y += y_offset;
    const int taps = channels * kernel_h * kernel_w;
    const ulong y_plane = (ulong)out_h * out_w * V;
    global float* mine = scratch + scratch_offset + (ulong)id * channels * kernel_h * row_length;
    for (int row = id * row_items; row < min((id + 1) * row_items, rows); row++) {
        const int n = row / out_h, oh = row % out_h;
        copy_rows(x + (ulong)n * channels * x_h * x_w, oh * stride_h - pad_h, channels, kernel_h, x_h, x_w, pad_w, dilate_h,
                  row_length, mine);
        for (int block0 = 0; block0 < out_blocks; block0 += O) {
            const ulong row_at = (((ulong)n * out_blocks + block0) * out_h + oh) * out_w * V;
            global const float* slab = w + (ulong)block0 * V * taps;
            VEC start[O];
#pragma unroll
            for (int o = 0; o < O; ++o)
                start[o] = has_bias && block0 + o < out_blocks ? read_lanes(bias, block0 + o, out) : (VEC)(0.0f);
            for (int column = 0; column < out_w; column += tile_pixels) {
                const int count = min(tile_pixels, out_w - column);
                VEC acc[O * P];
                FOR_SUMS(p, P) acc[o * P + p] = start[o];
                if (count > HALF) {
                    MULTIPLY_ROWS(P)
                } else if (count > QUARTER) {
                    MULTIPLY_ROWS(HALF)
                } else {
                    MULTIPLY_ROWS(QUARTER)
                }
                VEC sums[O * P];
                FOR_SUMS(p, P) sums[o * P + p] = acc[o * P + p];
                for (int o = 0; o < min(O, out_blocks - block0); o++) {
                    const int left = out - (block0 + o) * V;
                    for (int p = 0; p < count; p++) {
                        const ulong at = row_at + (ulong)o * y_plane + (ulong)(column + p) * V;
                        VEC v = sums[o * P + p];
                        EPILOGUE(v, at);
                        if (left < V) v = keep_lanes(v, left);
                        AT(y + at) = v;
                    }
                }
            }
        }
    }
}
