// SPDX-License-Identifier: MIT
// Packs weights as conv2d/implicit_gemm.cl and conv2d/subgroup.cl read them.
//
//     packed   [ group ][ k: `depth` ][ m: `row` ]
//
//     k = 0     | m 0 | m 1 | ...     output channels beside each other, zeros where there is none
//     k = 1     | m 0 | m 1 | ...     k: blocks of `block` input channels, within them taps, within those the channels
//
// Defines: none. Work-item: one element. Work-group: of any size, its items share nothing. Local memory: none.

kernel void implicit_gemm_pack(global const float* weight, ulong weight_offset, global float* packed,
                               ulong packed_offset, long count, int group_out, int group_in, int row, int depth,
                               int block, int kernel_h, int kernel_w, int weight_w, int h0, int h_step, int w0,
                               int w_step, long weight_group, long weight_out, long weight_in) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const int m = (int)(at % row), k = (int)(at / row % depth);
    const long g = at / row / depth;
    const int taps = kernel_h * kernel_w;
    const int tap = k / block % taps, c = k / block / taps * block + k % block;
    const int ky = tap / kernel_w, kx = tap % kernel_w;
    float v = 0;
    if (m < group_out && c < group_in)
        v = weight[weight_offset + g * weight_group + m * weight_out + c * weight_in +
                   (h0 + ky * h_step) * weight_w + w0 + kx * w_step];
    packed[packed_offset + at] = v;
}
