// SPDX-License-Identifier: MIT
// Packs plain weights of a grouped convolution for blocked.cl with ACROSS, whose slabs may have channels of several groups:
//
//     slab 0            slab 1            slab 2          groups of 24 channels, slabs of one block of 16
//     +-----------+     +-----+-----+     +-----------+
//     | 24 x 16   |     | 24x8|  0  |     | 24 x 16   |   lanes of different groups have weights of zero
//     +-----------+     +-----+-----+     +-----------+
//                       |  0  | 24x8|
//                       +-----+-----+
//
//     [slab, in block, kernel row, kernel column, in lane of the slab's range, O, out lane]
//
// Define      meaning                          example
// V           channels of a block              16
// OUT_LANES   output channels of a slab        16
// LANE_STEP   ranges of input channels begin and end at multiples of this: the same as in blocked.cl   4
//
// Before the weights lie V zeros. `slab_lanes` is the room for a slab's input channels. The other arguments are those of blocked_pack.cl.
// Work-item: one slab. Work-group: one work-item. Local memory: none.
#include "conv2d/blocked_reach.clh"

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void pack_across(global const float* w, ulong w_offset, global float* packed, ulong packed_offset, int slab_lanes, int out,
                 int in, int group_out, int group_in, int stride_group, int stride_out, int stride_in, int kernel_h,
                 int kernel_w, int kernel_w_full, int h0, int h_step, int w0, int w_step)
{
    const int slab = get_global_id(0);
    const int out0 = slab * OUT_LANES, outs = min(OUT_LANES, out - out0);
    const int first = reach_first(out0, group_out, group_in, LANE_STEP);
    const int end = reach_end(out0 + outs - 1, group_out, group_in, LANE_STEP);
    const int positions = kernel_h * kernel_w;
    w += w_offset;
    packed += packed_offset;
    if (slab == 0)
        for (int i = 0; i < V; i++) packed[i] = 0.0f;
    packed += V + (ulong)slab * slab_lanes * positions * OUT_LANES;
    for (int lane0 = first; lane0 < end; lane0 = (lane0 / V + 1) * V) {
        const int lane1 = min((lane0 / V + 1) * V, end);
        for (int k = 0; k < positions; k++) {
            const int tap = (h0 + k / kernel_w * h_step) * kernel_w_full + w0 + k % kernel_w * w_step;
            for (int i = lane0; i < lane1; i++, packed += OUT_LANES) {
                const int group = i / group_in;
                // The slab's output channels of the same group.
                const int o0 = clamp(group * group_out - out0, 0, outs);
                const int o1 = i < in ? clamp((group + 1) * group_out - out0, o0, outs) : o0;
                global const float* from = w + (ulong)group * stride_group + (ulong)(i % group_in) * stride_in + tap;
                for (int o = 0; o < o0; o++) packed[o] = 0.0f;
                for (int o = o0; o < o1; o++) packed[o] = from[(ulong)(out0 + o - group * group_out) * stride_out];
                for (int o = o1; o < OUT_LANES; o++) packed[o] = 0.0f;
            }
        }
    }
}
