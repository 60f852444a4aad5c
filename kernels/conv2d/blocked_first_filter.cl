// SPDX-License-Identifier: MIT
// conv2d_backward_filter.blocked_first: the gradient of weights on CPUs for a plain NCHW x of few channels (a network's first
// layer) and a blocked dy [N, C/V, H, W, V].
//
//            T taps
//          +---+- -+---+
// O vectors|   |   |   |     acc[o][t] += dy[o][pixel] * splat(x[pixel shifted by tap t])     over one output row
// of V     +---+- -+---+     a tap is a channel and a kernel position
// channels |   |   |   |     O * T accumulators, each in a register
//          +---+- -+---+
//
// Define   meaning                                          example
// V        lanes of a vector = output channels of a block   16
// O, T     blocks of output channels and taps of a tile     4, 7
//
// Work-item: the rows of one split. For each row it copies the input rows that it needs, with padding, to its part of
// `scratch` ([channels * kernel rows, row_length]). It adds the sums over the row to its part of `sums`,
// [split, slab of O output blocks, tap, O*V]. Then first_filter_sum adds the splits and writes plain weights.
// Work-group: one work-item. Local memory: none.
#include "common/vectors.clh"
#include "conv2d/blocked_first_rows.clh"
#include "conv2d/blocked_sums.clh"

global const float* taps_at(global const float* rows, int tap, int kernel_w, int row_length, int dilate_w) {
    return rows + tap / kernel_w * row_length + tap % kernel_w * dilate_w;
}

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void first_filter(global const float* x, ulong x_offset, global const float* dy, ulong dy_offset,
                  global float* sums, ulong sums_offset, global float* scratch, ulong scratch_offset, int splits,
                  int rows, int channels, int x_h, int x_w, int out_blocks, int out_h, int out_w, int kernel_h,
                  int kernel_w, int stride_h, int stride_w, int pad_h, int pad_w, int dilate_h, int dilate_w,
                  int row_length)
{
    const int split = get_global_id(0);
    const int taps = channels * kernel_h * kernel_w;
    const int slabs = (out_blocks + O - 1) / O;
    const ulong dy_plane = (ulong)out_h * out_w * V;
    x += x_offset;
    dy += dy_offset;
    sums += sums_offset + (ulong)split * slabs * taps * (O * V);
    global float* mine = scratch + scratch_offset + (ulong)split * channels * kernel_h * row_length;
    for (int k = 0; k < slabs * taps * O; k++) AT(sums + (ulong)k * V) = (VEC)(0.0f);
    const int first_row = (int)((long)rows * split / splits), last_row = (int)((long)rows * (split + 1) / splits);
    for (int row = first_row; row < last_row; row++) {
        const int n = row / out_h, oh = row % out_h;
        copy_rows(x + (ulong)n * channels * x_h * x_w, oh * stride_h - pad_h, channels, kernel_h, x_h, x_w, pad_w, dilate_h,
                  row_length, mine);
        for (int slab = 0; slab < slabs; slab++) {
            global const float* const dy_row = dy + (((ulong)n * out_blocks + slab * O) * out_h + oh) * out_w * V;
            const ulong dy_next = slab * O + O <= out_blocks ? dy_plane : 0;
            for (int t0 = 0; t0 < taps; t0 += T) {
                global const float* from[T];
                VEC acc[O * T];
#pragma unroll
                for (int t = 0; t < T; ++t) {
                    from[t] = taps_at(mine, min(t0 + t, taps - 1), kernel_w, row_length, dilate_w);
#pragma unroll
                    for (int o = 0; o < O; ++o) acc[o * T + t] = (VEC)(0.0f);
                }
                global const float* dp = dy_row;
                for (int at = 0; at < out_w * stride_w; at += stride_w, dp += V) {
                    VEC dy_now[O];
                    read_vectors(dp, dy_next, dy_now);
#pragma unroll
                    for (int t = 0; t < T; ++t) add_products(acc + t, T, dy_now, from[t][at]);
                }
                global float* to = sums + (ulong)(slab * taps + t0) * (O * V);
#pragma unroll
                for (int t = 0; t < T; ++t)
                    if (t0 + t < taps)
#pragma unroll
                        for (int o = 0; o < O; ++o) AT(to + (t * O + o) * V) += acc[o * T + t];
            }
        }
    }
}

// dw[out][tap] = the sum over splits. Work-item: one output block.
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void first_filter_sum(global const float* sums, ulong sums_offset, global float* dw, ulong dw_offset, int splits,
                      int out, int taps)
{
    const int block = get_global_id(0);
    const int slabs = ((out + V - 1) / V + O - 1) / O;
    const ulong split_step = (ulong)slabs * taps * (O * V);
    sums += sums_offset + (ulong)(block / O) * taps * (O * V) + block % O * V;
    dw += dw_offset + (ulong)block * V * taps;
    const int outs = min(V, out - block * V);
    for (int tap = 0; tap < taps; tap++) {
        VEC total = vec_at(sums + (ulong)tap * (O * V));
        for (int s = 1; s < splits; s++) total += vec_at(sums + s * split_step + (ulong)tap * (O * V));
        float lanes[V] __attribute__((aligned(4 * V)));
        *(VEC*)lanes = total;
        for (int o = 0; o < outs; o++) dw[(ulong)o * taps + tap] = lanes[o];
    }
}
