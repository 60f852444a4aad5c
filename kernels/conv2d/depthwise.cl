// SPDX-License-Identifier: MIT
// conv2d.depthwise and conv2d_backward_data.depthwise: convolutions of few input channels a group (a depthwise
// one has one), or one phase of such a data gradient, directly on plain images; and the filter gradient.
// Work-items read their neighbours' pixels through the cache.
//
// Defines: KERNEL_H, KERNEL_W, STRIDE_W, DILATE_W: at least 1; OUTPUTS: pixels of a row that a work-item makes.

#define TAPS (KERNEL_H * KERNEL_W)

// One work-item: OUTPUTS neighbours of one row of one output channel. taps_h is 0 where no tap reaches the phase.
kernel void depthwise(global const float* x, ulong x_offset, global const float* weight, ulong weight_offset,
                      global const float* bias, ulong bias_offset, global float* y, ulong y_offset, long count,
                      int has_bias, int taps_h, int groups, int group_in, int group_out, int x_h, int x_w, int y_h,
                      int y_w, int out_h, int out_w, int row0, int column0, int row_step, int column_step,
                      int stride_h, int pad_h, int pad_w, int dilate_h, int weight_w, int h0, int h_step, int w0,
                      int w_step, long weight_group, long weight_out, long weight_in EPILOGUE_PARAMETERS) {
    const long item = get_global_id(0);
    if (item >= count) return;
    const int strips = (out_w + OUTPUTS - 1) / OUTPUTS;
    const int strip = (int)(item % strips);
    const long line = item / strips;
    const int row = (int)(line % out_h);
    const long image_channel = line / out_h;
    const int channels = groups * group_out;
    const int channel = (int)(image_channel % channels);
    const long image = image_channel / channels;
    const int g = channel / group_out;
    const int ox0 = strip * OUTPUTS, top = row * stride_h - pad_h, left = ox0 * STRIDE_W - pad_w;
    x += x_offset + (ulong)(image * groups + g) * group_in * ((ulong)x_h * x_w);
    weight += weight_offset + g * weight_group + (channel - g * group_out) * weight_out;
    float sum[OUTPUTS];
#pragma unroll
    for (int e = 0; e < OUTPUTS; ++e) sum[e] = 0.0f;
    for (int c = 0; c < group_in; ++c) {
#pragma unroll
        for (int ky = 0; ky < KERNEL_H; ++ky) {
            const int iy = top + ky * dilate_h;
            if (ky >= taps_h || (uint)iy >= (uint)x_h) continue;
            global const float* from = x + (ulong)iy * x_w;
            global const float* factors = weight + (h0 + ky * h_step) * weight_w + w0;
#if DILATE_W == 1 && KERNEL_W <= 7
            // Every pixel of the strip once.
            float v[(OUTPUTS - 1) * STRIDE_W + KERNEL_W];
#pragma unroll
            for (int i = 0; i < (OUTPUTS - 1) * STRIDE_W + KERNEL_W; ++i)
                v[i] = (uint)(left + i) < (uint)x_w ? from[left + i] : 0.0f;
#pragma unroll
            for (int kx = 0; kx < KERNEL_W; ++kx) {
                const float factor = factors[kx * w_step];
#pragma unroll
                for (int e = 0; e < OUTPUTS; ++e) sum[e] += v[e * STRIDE_W + kx] * factor;
            }
#else
            for (int kx = 0; kx < KERNEL_W; ++kx) {
                const float factor = factors[kx * w_step];
#pragma unroll
                for (int e = 0; e < OUTPUTS; ++e) {
                    const int ix = left + e * STRIDE_W + kx * DILATE_W;
                    if ((uint)ix < (uint)x_w) sum[e] += from[ix] * factor;
                }
            }
#endif
        }
        x += (ulong)x_h * x_w;
        weight += weight_in;
    }
    const float more = has_bias ? bias[bias_offset + channel] : 0.0f;
    const ulong base = (ulong)image_channel * ((ulong)y_h * y_w) + (ulong)(row0 + row * row_step) * y_w + column0;
    y += y_offset;
#pragma unroll
    for (int e = 0; e < OUTPUTS; ++e) {
        if (ox0 + e < out_w) {
            const ulong at = base + (ulong)(ox0 + e) * column_step;
            float v = sum[e] + more;
            EPILOGUE(v, at);
            y[at] = v;
        }
    }
}
