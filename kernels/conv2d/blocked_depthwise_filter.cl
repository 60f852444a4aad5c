// SPDX-License-Identifier: MIT
// conv2d_backward_filter.blocked_depthwise: the gradient of depthwise weights on CPUs with blocked x and dy
// [N, C/V, H, W, V], where channels are lanes.
//
//     acc[u][k] += dy[pixel] * x[pixel * stride + k * dilate]      for K columns of one kernel row;
//                                                                  u is 0 for even pixels and 1 for odd ones
//
// Define   meaning                                          example
// V        lanes of a vector = channels of a block          16
// K        columns of the kernel                            3
//
// Work-item: one block of channels and one split of the chunks, where a chunk is a few rows of an image. The sums over a chunk
// are added to the work-item's part of `sums`, [split, block, kernel row, K, V]. Then depthwise_filter_sum adds the splits
// and writes plain weights.
// Work-group: one work-item. Local memory: none.
#include "common/mul_add.clh"
#include "common/vectors.clh"

/// Adds the products of a column of dy, of which some inputs, the first of them `column`, may be outside the image.
INLINE void add_edge(VEC* acc, global const float* dp, global const float* from, int col, int column, int x_w, int dilate_w) {
    const VEC d = vec_at(dp + col * V);
#pragma unroll
    for (int k = 0; k < K; ++k) {
        const int c = column + k * dilate_w;
        if (c >= 0 && c < x_w) acc[k] = mul_add(d, vec_at(from + (long)c * V), acc[k]);
    }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void depthwise_filter(global const float* x, ulong x_offset, global const float* dy, ulong dy_offset,
                      global float* sums, ulong sums_offset, int splits, int blocks, int batch, int chunks,
                      int chunk_rows, int x_h, int x_w, int out_h, int out_w, int kernel_h, int stride_h,
                      int stride_w, int pad_h, int pad_w, int dilate_h, int dilate_w)
{
    const int id = get_global_id(0);
    const int split = id / blocks, block = id % blocks;
    x += x_offset;
    dy += dy_offset;
    sums += sums_offset + (ulong)id * kernel_h * (K * V);
    for (int k = 0; k < kernel_h * K; k++) AT(sums + k * V) = (VEC)(0.0f);
    // Columns whose K inputs are all inside the image.
    const int in0 = min((max(pad_w, 0) + stride_w - 1) / stride_w, out_w);
    const int beyond = x_w + pad_w - (K - 1) * dilate_w;  // col * stride_w must be smaller
    const int in1 = max(in0, min(out_w, beyond > 0 ? (beyond + stride_w - 1) / stride_w : 0));
    const int all = batch * chunks;
    const int first = (int)((long)all * split / splits), last = (int)((long)all * (split + 1) / splits);
    for (int part = first; part < last; part++) {
        const int n = part / chunks, r0 = part % chunks * chunk_rows, r1 = min(r0 + chunk_rows, out_h);
        global const float* x_plane = x + ((ulong)n * blocks + block) * x_h * x_w * V;
        global const float* dy_plane = dy + ((ulong)n * blocks + block) * out_h * out_w * V;
        for (int kh = 0; kh < kernel_h; kh++) {
            VEC acc[2][K];
#pragma unroll
            for (int k = 0; k < K; ++k) acc[0][k] = acc[1][k] = (VEC)(0.0f);
            for (int row = r0; row < r1; row++) {
                const int h = row * stride_h - pad_h + kh * dilate_h;
                if (h < 0 || h >= x_h) continue;
                global const float* from = x_plane + (ulong)h * x_w * V;
                global const float* dp = dy_plane + (ulong)row * out_w * V;
                int col = 0;
                for (; col < in0; col++) add_edge(acc[0], dp, from, col, col * stride_w - pad_w, x_w, dilate_w);
                for (; col + 2 <= in1; col += 2) {
                    global const float* xp = from + (long)(col * stride_w - pad_w) * V;
#pragma unroll
                    for (int u = 0; u < 2; ++u) {
                        const VEC d = vec_at(dp + (col + u) * V);
#pragma unroll
                        for (int k = 0; k < K; ++k)
                            acc[u][k] = mul_add(d, vec_at(xp + (u * stride_w + k * dilate_w) * V), acc[u][k]);
                    }
                }
                for (; col < out_w; col++) add_edge(acc[0], dp, from, col, col * stride_w - pad_w, x_w, dilate_w);
            }
            global float* to = sums + kh * (K * V);
#pragma unroll
            for (int k = 0; k < K; ++k) AT(to + k * V) += acc[0][k] + acc[1][k];
        }
    }
}

// dw[channel][tap] = the sum over splits. Work-item: one block.
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void depthwise_filter_sum(global const float* sums, ulong sums_offset, global float* dw, ulong dw_offset,
                          int splits, int channels, int blocks, int taps)
{
    const int block = get_global_id(0);
    sums += sums_offset + (ulong)block * taps * V;
    dw += dw_offset + (ulong)block * V * taps;
    const int lanes_here = min(V, channels - block * V);
    for (int tap = 0; tap < taps; tap++) {
        VEC total = vec_at(sums + tap * V);
        for (int s = 1; s < splits; s++) total += vec_at(sums + ((ulong)s * blocks * taps + tap) * V);
        float lanes[V] __attribute__((aligned(4 * V)));
        *(VEC*)lanes = total;
        for (int l = 0; l < lanes_here; l++) dw[(ulong)l * taps + tap] = lanes[l];
    }
}
