// SPDX-License-Identifier: MIT
// conv2d_backward_data.depthwise where the convolution has a stride: dx of convolutions of few channels a group, on
// plain images, all phases of the stride in one launch.
//
// A work-item makes OUTPUTS neighbours of a row of dx; OUTPUTS is a multiple of STRIDE_W, so that which taps reach
// which of them is known when this is compiled. Their dy are the SPAN columns from strip * OUTPUTS / STRIDE_W + LOW on.
// No local memory.
//
// Defines: KERNEL_H, KERNEL_W, STRIDE_H, STRIDE_W, DILATE_W, PAD_W, OUTPUTS, LOW, SPAN; COUNT_T: an unsigned type
// that counts work-items.

// Where tap kx puts column e of a strip, in columns of dy times the stride.
#define REACH(e, kx) ((e) + PAD_W - (kx)*DILATE_W)

kernel void depthwise_strided(global const float* dy, ulong dy_offset, global const float* weight, ulong weight_offset,
                              global float* dx, ulong dx_offset, long count, int in, int group_in, int group_out,
                              int h, int w, int oh, int ow, int pad_h, int dilate_h EPILOGUE_PARAMETERS) {
    const COUNT_T item = (COUNT_T)get_global_id(0);
    if (item >= (COUNT_T)count) return;
    const int strips = (w + OUTPUTS - 1) / OUTPUTS;
    const int strip = (int)(item % (COUNT_T)strips);
    const COUNT_T line = item / (COUNT_T)strips;
    const int row = (int)(line % (COUNT_T)h);
    const COUNT_T image_channel = line / (COUNT_T)h;
    const int channel = (int)(image_channel % (COUNT_T)in);
    const COUNT_T image = image_channel / (COUNT_T)in;
    const int g = channel / group_in, c = channel - g * group_in, groups = in / group_in;
    const int first = strip * (OUTPUTS / STRIDE_W) + LOW;
    dy += dy_offset + ((ulong)image * groups + g) * group_out * ((ulong)oh * ow);
    weight += weight_offset + ((ulong)g * group_out * group_in + c) * (KERNEL_H * KERNEL_W);
    float sum[OUTPUTS];
#pragma unroll
    for (int e = 0; e < OUTPUTS; ++e) sum[e] = 0.0f;
    for (int o = 0; o < group_out; ++o) {
#pragma unroll
        for (int ky = 0; ky < KERNEL_H; ++ky) {
            const int reach = row + pad_h - ky * dilate_h, oy = reach / STRIDE_H;
            if (reach < 0 || reach % STRIDE_H != 0 || oy >= oh) continue;
            global const float* from = dy + (ulong)oy * ow;
            float v[SPAN];
#pragma unroll
            for (int i = 0; i < SPAN; ++i) v[i] = (uint)(first + i) < (uint)ow ? from[first + i] : 0.0f;
#pragma unroll
            for (int kx = 0; kx < KERNEL_W; ++kx) {
                const float factor = weight[ky * KERNEL_W + kx];
#pragma unroll
                for (int e = 0; e < OUTPUTS; ++e)
                    if (REACH(e, kx) % STRIDE_W == 0) sum[e] += v[REACH(e, kx) / STRIDE_W - LOW] * factor;
            }
        }
        dy += (ulong)oh * ow;
        weight += (ulong)group_in * (KERNEL_H * KERNEL_W);
    }
#pragma unroll
    for (int e = 0; e < OUTPUTS; ++e) {
        const int column = strip * OUTPUTS + e;
        if (column < w) {
            const ulong at = (ulong)line * w + column;
            float v = sum[e];
            EPILOGUE(v, at);
            dx[dx_offset + at] = v;
        }
    }
}
