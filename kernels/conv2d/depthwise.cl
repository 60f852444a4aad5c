// SPDX-License-Identifier: MIT
// conv2d.depthwise and conv2d_backward_data.depthwise: convolutions of few input channels a group (a depthwise
// one has one), or one phase of such a data gradient, directly on plain images; and the filter gradient.
// Work-items read their neighbours' pixels through the cache.
//
// Neighbouring work-items have neighbouring columns, so that each read of theirs is a line of memory; rows that a
// work-item makes share the rows of pixels that they meet.
//
// Defines: KERNEL_H, KERNEL_W: at least 1; STRIDE_H, STRIDE_W, DILATE_H, DILATE_W; ROWS x OUTPUTS: pixels that a
// work-item makes, of ROWS rows (1 unless DILATE_H is 1); COUNT_T: an unsigned type that counts work-items.

#define TAPS (KERNEL_H * KERNEL_W)
#define SPAN_H ((ROWS - 1) * STRIDE_H + KERNEL_H)
#define SPAN_W ((OUTPUTS - 1) * STRIDE_W + KERNEL_W)

// taps_h is 0 where no tap reaches the phase.
kernel void depthwise(global const float* x, ulong x_offset, global const float* weight, ulong weight_offset,
                      global const float* bias, ulong bias_offset, global float* y, ulong y_offset, long count,
                      int has_bias, int taps_h, int groups, int group_in, int group_out, int x_h, int x_w, int y_h,
                      int y_w, int out_h, int out_w, int row0, int column0, int row_step, int column_step,
                      int pad_h, int pad_w, int weight_w, int h0, int h_step, int w0, int w_step, long weight_group,
                      long weight_out, long weight_in EPILOGUE_PARAMETERS) {
    const COUNT_T item = (COUNT_T)get_global_id(0);
    if (item >= (COUNT_T)count) return;
    const int strips = (out_w + OUTPUTS - 1) / OUTPUTS, bands = (out_h + ROWS - 1) / ROWS;
    const int strip = (int)(item % (COUNT_T)strips);
    const COUNT_T line = item / (COUNT_T)strips;
    const int row = (int)(line % (COUNT_T)bands) * ROWS;
    const COUNT_T image_channel = line / (COUNT_T)bands;
    const int channels = groups * group_out;
    const int channel = (int)(image_channel % (COUNT_T)channels);
    const COUNT_T image = image_channel / (COUNT_T)channels;
    const int g = channel / group_out;
    const int ox0 = strip * OUTPUTS, top = row * STRIDE_H - pad_h, left = ox0 * STRIDE_W - pad_w;
    x += x_offset + ((ulong)image * groups + g) * group_in * ((ulong)x_h * x_w);
    weight += weight_offset + g * weight_group + (channel - g * group_out) * weight_out;
    float sum[ROWS * OUTPUTS];
#pragma unroll
    for (int e = 0; e < ROWS * OUTPUTS; ++e) sum[e] = 0.0f;
    for (int c = 0; c < group_in; ++c) {
        float factors[TAPS];
#pragma unroll
        for (int k = 0; k < TAPS; ++k)
            factors[k] = k / KERNEL_W < taps_h
                             ? weight[(h0 + k / KERNEL_W * h_step) * weight_w + w0 + k % KERNEL_W * w_step]
                             : 0.0f;
#pragma unroll
        for (int r = 0; r < SPAN_H; ++r) {
            const int iy = top + r * DILATE_H, inside = (uint)iy < (uint)x_h;
            global const float* from = x + (ulong)(inside ? iy : 0) * x_w;
#if DILATE_W == 1 && KERNEL_W <= 7
            // Every pixel of the strip once.
            float v[SPAN_W];
#pragma unroll
            for (int i = 0; i < SPAN_W; ++i)
                v[i] = inside && (uint)(left + i) < (uint)x_w ? from[left + i] : 0.0f;
#define PIXEL(e, kx) v[(e)*STRIDE_W + (kx)]
#else
#define PIXEL(e, kx)                                                                                  \
    (inside && (uint)(left + (e)*STRIDE_W + (kx)*DILATE_W) < (uint)x_w ? from[left + (e)*STRIDE_W + (kx)*DILATE_W] \
                                                                       : 0.0f)
#endif
#pragma unroll
            for (int e_y = 0; e_y < ROWS; ++e_y) {
                const int ky = r - e_y * STRIDE_H;
                if (ky < 0 || ky >= KERNEL_H) continue;
#pragma unroll
                for (int kx = 0; kx < KERNEL_W; ++kx)
#pragma unroll
                    for (int e = 0; e < OUTPUTS; ++e)
                        sum[e_y * OUTPUTS + e] += PIXEL(e, kx) * factors[ky * KERNEL_W + kx];
            }
        }
        x += (ulong)x_h * x_w;
        weight += weight_in;
    }
    const float more = has_bias ? bias[bias_offset + channel] : 0.0f;
    y += y_offset;
#pragma unroll
    for (int e = 0; e < ROWS * OUTPUTS; ++e) {
        const int oy = row + e / OUTPUTS, ox = ox0 + e % OUTPUTS;
        if (oy < out_h && ox < out_w) {
            const ulong at = (ulong)image_channel * ((ulong)y_h * y_w) + (ulong)(row0 + oy * row_step) * y_w + column0 +
                             (ulong)ox * column_step;
            float v = sum[e] + more;
            EPILOGUE(v, at);
            y[at] = v;
        }
    }
}
