// SPDX-License-Identifier: MIT
// Transforms and packs 3x3 weights for winograd.cl: [position][group][depth][row]. depth counts input channels and row output
// channels. Both are rounded up, and channels that do not exist are zero.
//
// Define   meaning                                       example
// SIZE     as in winograd_input.cl: 2 or 4               4
//
// Element (h, w) of the kernel of output channel m and input channel c is
//   weight[g * weight_group + m * weight_out + c * weight_in + (h0 + h * h_step) * 3 + w0 + w * w_step]
// so that data gradients can reverse it.
//
// Work-item: all positions of one (group, c, m). Local memory: none.
#define VALUE float
#include "common/winograd.clh"

#define SPAN (SIZE + 2)

kernel void winograd_pack(global const float* weight, ulong weight_offset, global float* packed, ulong packed_offset,
                          long count, int group_out, int group_in, int row, int depth, int h0, int h_step, int w0,
                          int w_step, long weight_group, long weight_out, long weight_in) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const int m = (int)(at % row), c = (int)(at / row % depth);
    const long g = at / row / depth;
    float t[9], half_way[3 * SPAN];
#pragma unroll
    for (int i = 0; i < 9; ++i) t[i] = 0.0f;
    if (m < group_out && c < group_in) {
        weight += weight_offset + g * weight_group + m * weight_out + c * weight_in + h0 * 3 + w0;
#pragma unroll
        for (int h = 0; h < 3; ++h)
#pragma unroll
            for (int w = 0; w < 3; ++w) t[h * 3 + w] = weight[h * h_step * 3 + w * w_step];
    }
#pragma unroll
    for (int w = 0; w < 3; ++w) {
        float f[SPAN];
        JOIN(winograd_weights_, SIZE)(t + w, 3, f);
#pragma unroll
        for (int i = 0; i < SPAN; ++i) half_way[i * 3 + w] = f[i];
    }
#pragma unroll
    for (int i = 0; i < SPAN; ++i) {
        float f[SPAN];
        JOIN(winograd_weights_, SIZE)(half_way + i * 3, 1, f);
#pragma unroll
        for (int j = 0; j < SPAN; ++j) packed[packed_offset + (i * SPAN + j) * count + at] = f[j];
    }
}
