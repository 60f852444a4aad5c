// SPDX-License-Identifier: MIT
// Packs plain convolution weights for blocked.cl and blocked_first.cl:
//
//     [slab, in block, kernel row, kernel column, in lane, O, out lane]
//
// A slab is O blocks of V output channels of one group. Lanes beyond a group's channels are zero.
//
// Define      meaning                                                     example
// IN_LANES    input channels of a block: V, or 1 for blocked_first.cl     16
// OUT_LANES   output channels of a slab: O*V                              32
//
// The source of output channel `o` and input channel `i` of group g at kernel position (h, w) is
//   g*stride_group + o*stride_out + i*stride_in + (h0 + h*h_step)*kernel_w_full + w0 + w*w_step
// so that one kernel serves the convolution, its data gradient (channels swapped, taps flipped) and the phases of a strided
// data gradient.
//
// Work-item: one (slab, in block). Work-group: one work-item. Local memory: none.
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void pack(global const float* w, ulong w_offset, global float* packed, ulong packed_offset,
          int group_slabs, int in_blocks, int group_out, int group_in, int stride_group, int stride_out,
          int stride_in, int kernel_h, int kernel_w, int kernel_w_full, int h0, int h_step, int w0, int w_step)
{
    const int id = get_global_id(0);
    const int slab = id / in_blocks, block = id % in_blocks;
    const int group = slab / group_slabs, out0 = slab % group_slabs * OUT_LANES;
    const int positions = kernel_h * kernel_w;
    w += w_offset + (ulong)group * stride_group;
    packed += packed_offset + (ulong)id * positions * (IN_LANES * OUT_LANES);
    const int outs = clamp(group_out - out0, 0, OUT_LANES);
    const int ins = min(group_in - block * IN_LANES, IN_LANES);
    for (int h = 0; h < kernel_h; h++)
        for (int c = 0; c < kernel_w; c++) {
            global const float* from = w + (ulong)out0 * stride_out + (ulong)block * IN_LANES * stride_in +
                                       (h0 + h * h_step) * kernel_w_full + w0 + c * w_step;
            global float* to = packed + (h * kernel_w + c) * (IN_LANES * OUT_LANES);
            for (int i = 0; i < IN_LANES; i++, to += OUT_LANES) {
                const int n = i < ins ? outs : 0;
                for (int o = 0; o < n; o++) to[o] = from[(ulong)o * stride_out + (ulong)i * stride_in];
                for (int o = n; o < OUT_LANES; o++) to[o] = 0.0f;
            }
        }
}
