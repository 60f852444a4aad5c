// SPDX-License-Identifier: MIT
// Packs plain convolution weights for blocked.cl and blocked_first.cl:
//
//     [slab, in block, kernel row, kernel column, in lane, O, out lane]
//
// A slab is O blocks of V output channels of one group. Lanes beyond a group's channels are zero.
//
// in_lanes are the input channels of a block: V, or 1 for blocked_first.cl and blocked_depthwise.cl. out_lanes are the output
// channels of a slab: O*V. Before the weights lie `zeros` zeros.
//
// The source of output channel `o` and input channel `i` of group g at kernel position (h, w) is
//   g*stride_group + o*stride_out + i*stride_in + (h0 + h*h_step)*kernel_w_full + w0 + w*w_step
// so that one kernel serves the convolution, its data gradient (channels swapped, taps flipped) and the phases of a strided
// data gradient.
//
// Work-item: one (slab, in block). Work-group: one work-item. Local memory: none.
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void pack(global const float* w, ulong w_offset, global float* packed, ulong packed_offset,
          int zeros, int in_lanes, int out_lanes, int group_slabs, int in_blocks, int group_out, int group_in, int stride_group, int stride_out,
          int stride_in, int kernel_h, int kernel_w, int kernel_w_full, int h0, int h_step, int w0, int w_step)
{
    const int id = get_global_id(0);
    const int slab = id / in_blocks, block = id % in_blocks;
    const int group = slab / group_slabs, out0 = slab % group_slabs * out_lanes;
    const int positions = kernel_h * kernel_w;
    w += w_offset + (ulong)group * stride_group;
    packed += packed_offset;
    if (id == 0)
        for (int i = 0; i < zeros; i++) packed[i] = 0.0f;
    packed += zeros + (ulong)id * positions * (in_lanes * out_lanes);
    const int outs = clamp(group_out - out0, 0, out_lanes);
    const int ins = min(group_in - block * in_lanes, in_lanes);
    for (int h = 0; h < kernel_h; h++)
        for (int c = 0; c < kernel_w; c++) {
            global const float* from = w + (ulong)out0 * stride_out + (ulong)block * in_lanes * stride_in +
                                       (h0 + h * h_step) * kernel_w_full + w0 + c * w_step;
            global float* to = packed + (h * kernel_w + c) * (in_lanes * out_lanes);
            for (int i = 0; i < in_lanes; i++, to += out_lanes) {
                const int n = i < ins ? outs : 0;
                for (int o = 0; o < n; o++) to[o] = from[(ulong)o * stride_out + (ulong)i * stride_in];
                for (int o = n; o < out_lanes; o++) to[o] = 0.0f;
            }
        }
}
