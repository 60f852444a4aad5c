// SPDX-License-Identifier: MIT
// conv2d.depthwise and conv2d_backward_data.depthwise: convolutions with few input channels per group (a depthwise one
// has one), and their data gradients, directly on plain images.
//
//     SPAN_H x SPAN_W pixels of x, read once  ->  block of ROWS x OUTPUTS pixels of y       (depthwise_block.clh)
//
// Define                    meaning                                                          example
// those of depthwise_block.clh
// GROUPS                    groups of channels                                               32
// SUM, MAKE                 channels of x and of y per group                                 1, 1
// WEIGHT_GROUP              elements of weight from one group to the next                    9
// WEIGHT_SUM, WEIGHT_MAKE   the same from one input channel and one output channel to the next   9, 9
// REVERSED                  1 if taps are in reverse order                                   0
// COUNT_T                   an unsigned type for the number of work-items                    uint
// and the epilogue (src/engine/epilogue.hpp).
//
// Work-item: one block of y. Neighbouring work-items compute neighbouring columns. Local memory: none.
#include "conv2d/depthwise_block.clh"

/// Adds to `sum` the contributions of all channels of a group to the block whose position in x is (top, left).
INLINE void add_block(global const float* x, global const float* weight, int top, int left, bool aligned, float* sum) {
    for (int s = 0; s < SUM; ++s) {
        float factors[TAPS];
#pragma unroll
        for (int k = 0; k < TAPS; ++k) factors[k] = weight[REVERSED ? TAPS - 1 - k : k];
#pragma unroll
        for (int r = 0; r < SPAN_H; ++r) {
            float v[SPAN_W];
            load_row(x, top, left, r, aligned, v);
#pragma unroll
            for (int row = 0; row < ROWS; ++row)
#pragma unroll
                for (int ky = 0; ky < KERNEL_H; ++ky) {
                    if (!meets_row(row, ky) || row_met(row, ky) != r) continue;
#pragma unroll
                    for (int kx = 0; kx < KERNEL_W; ++kx)
#pragma unroll
                        for (int e = 0; e < OUTPUTS; ++e)
                            if (meets_column(e, kx))
                                sum[row * OUTPUTS + e] += v[column_met(e, kx)] * factors[ky * KERNEL_W + kx];
                }
        }
        x += X_H * X_W;
        weight += WEIGHT_SUM;
    }
}

kernel void depthwise(global const float* x, ulong x_offset, global const float* weight, ulong weight_offset,
                      global const float* bias, ulong bias_offset, global float* y, ulong y_offset, long count,
                      int has_bias EPILOGUE_PARAMETERS) {
    const COUNT_T item = (COUNT_T)get_global_id(0);
    if (item >= (COUNT_T)count) return;
    const int strip = (int)(item % STRIPS);
    const COUNT_T line = item / STRIPS;
    const int band = (int)(line % BANDS);
    const COUNT_T image_channel = line / BANDS, image_group = image_channel / MAKE;
    const int m = (int)(image_channel % MAKE), g = (int)(image_group % GROUPS);
    x += x_offset + (ulong)image_group * (SUM * X_H) * X_W;
    weight += weight_offset + (ulong)g * WEIGHT_GROUP + m * WEIGHT_MAKE;
    float sum[ROWS * OUTPUTS];
#pragma unroll
    for (int e = 0; e < ROWS * OUTPUTS; ++e) sum[e] = 0.0f;
    const bool aligned = ((x_offset | y_offset) & 3) == 0;
    if (aligned)
        add_block(x, weight, band * OWN_H, strip * OWN_W, true, sum);
    else
        add_block(x, weight, band * OWN_H, strip * OWN_W, false, sum);
    const float more = has_bias ? bias[bias_offset + g * MAKE + m] : 0.0f;
    y += y_offset;
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
        const int oy = band * ROWS + row;
        if (Y_H % ROWS != 0 && oy >= Y_H) continue;
#pragma unroll
        for (int e = 0; e < OUTPUTS; e += VY) {
            const int ox = strip * OUTPUTS + e;
            if (Y_W % OUTPUTS != 0 && ox >= Y_W) continue;
            const ulong at = ((ulong)image_channel * Y_H + oy) * Y_W + ox;
            float result[VY];
#pragma unroll
            for (int i = 0; i < VY; ++i) {
                result[i] = sum[row * OUTPUTS + e + i] + more;
                EPILOGUE(result[i], at + i);
            }
#if VY > 1
            if (aligned) {
#if VY == 4
                *(global float4*)(y + at) = (float4)(result[0], result[1], result[2], result[3]);
#else
                *(global float2*)(y + at) = (float2)(result[0], result[1]);
#endif
                continue;
            }
#endif
#pragma unroll
            for (int i = 0; i < VY; ++i) y[at + i] = result[i];
        }
    }
}
