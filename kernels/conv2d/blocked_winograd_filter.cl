// SPDX-License-Identifier: MIT
// conv2d_backward_filter.blocked_winograd: the gradient of the weights of 3x3 convolutions of stride 1 on CPUs with blocked x
// and dy [N, C/V, H, W, V], by the transpose of Winograd's F(4x4, 3x3) (common/winograd.clh).
//
//     tile of dy: 4x4 pixels  ->  6x6 points  --+
//                                               +-->  products, summed over tiles  ->  3x3 taps
//     tile of x:  6x6 pixels  ->  6x6 points  --+
//
// Define   meaning                                                         example
// V        lanes of a vector = channels of a block                         16
// O, I     blocks of output channels and input channels in registers;
//          I divides V                                                     2, 8
//
// Work-item: several tasks, one after the other. A task is a part of the weights, `tile_out` x `tile_in` blocks, and every
// `splits`-th part of the tiles. For each group of `group_tiles` tiles the work-item computes in its part of `scratch`
//
//     u [point][out block][tile][V]      the transformed tiles of dy
//     v [point][in block][tile][V]       the transformed tiles of x
//     m [point][out block][in lane][V]   += u * splat(v) over the group's tiles, for each of the 36 points, with O blocks of
//                                        output channels by I input channels in registers
//
// Finally m is transformed to weights. If there are several splits, winograd_filter_sum does that. Rows of u, v and m have an
// odd number of vectors, so that the places of a tile are in different cache sets. Each group is summed separately, because
// the error of a sum grows with its length.
// Work-group: one work-item. Local memory: none.
#include "common/vectors.clh"
#define VALUE VEC
#include "common/winograd.clh"

#define ROWS 4
#define COLUMNS 4
#define SPAN_H 6
#define SPAN_W 6
#define POINTS (SPAN_H * SPAN_W)
#include "conv2d/blocked_sums.clh"
#include "conv2d/blocked_winograd_tile.clh"

/// Writes the points of the 4x4 tile of dy at `from`, whose rows are `stride` floats apart, to `to`, `row_step` floats apart.
INLINE void transform_gradient(global const float* from, int stride, global float* to, ulong row_step) {
    VEC t[SPAN_H * 4];  // columns that are transformed
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        VEC d[4], f[SPAN_H];
#pragma unroll
        for (int i = 0; i < 4; ++i) d[i] = vec_at(from + i * stride + c * V);
        winograd_gradient_4(d, 1, f);
#pragma unroll
        for (int i = 0; i < SPAN_H; ++i) t[i * 4 + c] = f[i];
    }
#pragma unroll
    for (int i = 0; i < SPAN_H; ++i) {
        VEC f[SPAN_W];
        winograd_gradient_4(t + i * 4, 1, f);
#pragma unroll
        for (int c = 0; c < SPAN_W; ++c) AT(to + (ulong)(i * SPAN_W + c) * row_step) = f[c];
    }
}

VEC point_sum(global const float* from, ulong split_step, int splits)
{
    VEC total = vec_at(from);
    for (int s = 1; s < splits; s++) total += vec_at(from + s * split_step);
    return total;
}

// Writes dw [out][in][3][3] of one output block and one input channel. `from` is its place in the first point's row of
// m.
void write_weights(global const float* from, int m_row, ulong split_step, int splits, global float* dw, int outs, int in)
{
    VEC t[3 * SPAN_W];  // columns that are transformed
    VEC taps[9];
#pragma unroll
    for (int c = 0; c < SPAN_W; ++c) {
        VEC d[SPAN_H], f[3];
#pragma unroll
        for (int i = 0; i < SPAN_H; ++i) d[i] = point_sum(from + (ulong)(i * SPAN_W + c) * m_row, split_step, splits);
        winograd_taps_4(d, 1, f);
#pragma unroll
        for (int i = 0; i < 3; ++i) t[i * SPAN_W + c] = f[i];
    }
#pragma unroll
    for (int i = 0; i < 3; ++i) winograd_taps_4(t + i * SPAN_W, 1, taps + i * 3);
    const float* lanes = (const float*)taps;
    for (int o = 0; o < outs; o++)
        for (int k = 0; k < 9; k++) dw[(ulong)o * in * 9 + k] = lanes[k * V + o];
}

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void winograd_filter(global const float* x, ulong x_offset, global const float* dy, ulong dy_offset, global float* dw,
                     ulong dw_offset, global float* scratch, ulong scratch_offset, int items, int tasks, int splits,
                     int tile_out, int tile_in, int in_tiles, int out_blocks, int in_blocks, int out, int in,
                     int group_tiles, int u_row, int v_row, int m_row, int tiles, int tile_rows, int tile_columns,
                     int x_h, int x_w, int y_h, int y_w, int pad_h, int pad_w)
{
    const int id = get_global_id(0);
    x += x_offset;
    dy += dy_offset;
    dw += dw_offset;
    global float* const edge = scratch + scratch_offset + (ulong)id * POINTS * ((ulong)u_row + v_row + m_row + V);
    global float* const u = edge + POINTS * V;
    global float* const v = u + (ulong)POINTS * u_row;
    global float* const m = v + (ulong)POINTS * v_row;
    const ulong x_plane = (ulong)x_h * x_w * V, y_plane = (ulong)y_h * y_w * V;
    const int first = (int)((long)tasks * id / items), last = (int)((long)tasks * (id + 1) / items);
    for (int task = first; task < last; task++) {
        const int part = task / splits, split = task % splits;
        const int b0 = part / in_tiles * tile_out, outs = min(tile_out, out_blocks - b0);
        const int c0 = part % in_tiles * tile_in, ins = min(tile_in, in_blocks - c0);
        const int begin = (int)((long)tiles * split / splits), end = (int)((long)tiles * (split + 1) / splits);
        const ulong m_next = (ulong)ins * V * V;  // from one output block's sums to the next block's
        for (int tile0 = begin; tile0 < end; tile0 += group_tiles) {
            const int count = min(group_tiles, end - tile0);
            for (int b = 0; b < outs; b++)
                for (int tile = 0; tile < count; tile++) {
                    const int column = (tile0 + tile) % tile_columns, row = (tile0 + tile) / tile_columns;
                    const int h0 = row % tile_rows * 4, w0 = column * 4;
                    global const float* const image = dy + ((ulong)(row / tile_rows) * out_blocks + b0 + b) * y_plane;
                    global const float* from = image + ((ulong)h0 * y_w + w0) * V;
                    global float* const to = u + ((ulong)b * group_tiles + tile) * V;
                    int stride = y_w * V;
                    if (h0 + 4 > y_h || w0 + 4 > y_w) {
                        copy_tile(image, h0, w0, y_h, y_w, 4, 4, edge);
                        from = edge;
                        stride = 4 * V;
                    }
                    transform_gradient(from, stride, to, u_row);
                }
            for (int c = 0; c < ins; c++)
                for (int tile = 0; tile < count; tile++) {
                    const int column = (tile0 + tile) % tile_columns, row = (tile0 + tile) / tile_columns;
                    const int h0 = row % tile_rows * 4 - pad_h, w0 = column * 4 - pad_w;
                    global const float* const image = x + ((ulong)(row / tile_rows) * in_blocks + c0 + c) * x_plane;
                    global const float* from = image + ((long)h0 * x_w + w0) * V;
                    global float* const to = v + ((ulong)c * group_tiles + tile) * V;
                    int stride = x_w * V;
                    if (h0 < 0 || w0 < 0 || h0 + SPAN_H > x_h || w0 + SPAN_W > x_w) {
                        copy_tile(image, h0, w0, x_h, x_w, SPAN_H, SPAN_W, edge);
                        from = edge;
                        stride = SPAN_W * V;
                    }
                    transform_tile(from, stride, to, v_row);
                }
            for (int point = 0; point < POINTS; point++)
                for (int b = 0; b < outs; b += O) {
                    const ulong dy_next = b + O <= outs ? (ulong)group_tiles * V : 0;
                    for (int lane = 0; lane < ins * V; lane += I) {
                        global const float* dp = u + (ulong)point * u_row + (ulong)b * group_tiles * V;
                        global const float* const end_dp = dp + (ulong)count * V;
                        global const float* xp = v + (ulong)point * v_row + (ulong)(lane / V) * group_tiles * V + lane % V;
                        global float* const to = m + (ulong)point * m_row + b * m_next + (ulong)lane * V;
                        VEC acc[O * I];
                        FOR_SUMS(i, I) acc[o * I + i] = (VEC)(0.0f);
                        for (; dp < end_dp; dp += V, xp += V) {
                            VEC dy_now[O];
                            read_vectors(dp, dy_next, dy_now);
#pragma unroll
                            for (int i = 0; i < I; ++i) add_products(acc + i, I, dy_now, xp[i]);
                        }
                        FOR_SUMS(i, I) if (b + o < outs) {
                            global float* const sum = to + o * m_next + i * V;
                            AT(sum) = tile0 != begin ? acc[o * I + i] + vec_at(sum) : acc[o * I + i];
                        }
                    }
                }
        }
        if (splits == 1)
            for (int b = 0; b < outs; b++)
                for (int lane = 0; lane < ins * V && c0 * V + lane < in; lane++)
                    write_weights(m + b * m_next + (ulong)lane * V, m_row, 0, 1,
                                  dw + ((ulong)(b0 + b) * V * in + c0 * V + lane) * 9, min(V, out - (b0 + b) * V), in);
    }
}

// Computes weights from the sums of all splits; each split is one task of one work-item. Work-item: one output block
// and one input block.
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void winograd_filter_sum(global float* dw, ulong dw_offset, global const float* scratch, ulong scratch_offset, int splits,
                         int tile_out, int tile_in, int in_tiles, int in_blocks, int out, int in, int u_row, int v_row,
                         int m_row)
{
    const int id = get_global_id(0);
    const int b = id / in_blocks, c = id % in_blocks;
    const int part = b / tile_out * in_tiles + c / tile_in;
    const int ins = min(tile_in, in_blocks - c / tile_in * tile_in);
    const ulong item = (ulong)POINTS * ((ulong)u_row + v_row + m_row + V);
    global const float* const m = scratch + scratch_offset + (ulong)part * splits * item + (ulong)POINTS * ((ulong)u_row + v_row + V);
    for (int lane = 0; lane < V && c * V + lane < in; lane++)
        write_weights(m + ((ulong)(b % tile_out) * ins * V + c % tile_in * V + lane) * V, m_row, item, splits,
                      dw + dw_offset + ((ulong)b * V * in + c * V + lane) * 9, min(V, out - b * V), in);
}
