// SPDX-License-Identifier: MIT
// conv2d.depthwise_last and conv2d_backward_data.depthwise_last: depthwise convolutions (one input and one output
// channel per group), or one phase of such a data gradient, on channels_last images of float, half or bfloat16.
//
//     SPAN_H x SPAN_W pixels of x, 4 channels each  ->  ROWS x OUTPUTS pixels of y, 4 channels each
//
// Define               meaning                                                        example
// X_KIND, Y_KIND       how x and y are stored (common/storage.clh)                       1, 1
// KERNEL_H, KERNEL_W   the kernel's size, at least 1                                  3, 3
// STRIDE_H, STRIDE_W   strides                                                        1, 1
// DILATE_H, DILATE_W   dilations                                                      1, 1
// ROWS                 rows of a block; 1 unless DILATE_H is 1                        2
// OUTPUTS              columns of a block; 1 unless DILATE_W is 1                     4
// COUNT_T              an unsigned type for the number of blocks                      uint
// TAIL                 channels beyond the last four; not defined where all are in    2
//                      fours. They are the end of a quad that begins less than 4 before
// QUADS                see below; not defined for kernels of up to 25 elements        16
// and the epilogue (src/engine/epilogue.hpp).
//
// Work-item: a block of four channels. Neighbouring work-items have neighbouring channels, so each load reads
// consecutive memory. Pixels that several outputs need are read once. The kernel's elements are kept in registers, and no local
// memory is used.
//
// Larger kernels have more elements than there are registers. There a work-group has QUADS quads of channels side by side and
// 128 / QUADS places, which is 128 work-items, and its weights lie in local memory: 16 * QUADS * TAPS bytes.
#if Y_KIND == 2
#define STORES_BFLOAT
#endif
#include "common/storage_fours.clh"

#define TAPS (KERNEL_H * KERNEL_W)
#define SPAN_H ((ROWS - 1) * STRIDE_H + KERNEL_H)
#define SPAN_W ((OUTPUTS - 1) * STRIDE_W + KERNEL_W)

#ifdef TAIL
#define QUADS_OF(channels) ((channels) / 4 + 1)
#define QUAD_CHANNEL(quad) min((quad) * 4, channels - 4)
#define FOURS_ALIGNED(kind, p) 0
#else
#define QUADS_OF(channels) ((channels) / 4)
#define QUAD_CHANNEL(quad) ((quad) * 4)
#define FOURS_ALIGNED(kind, p) fours_aligned(kind, p)
#endif
// Where weight k of a channel lies, from its first: a sum.
#define WEIGHT(k) (h0 + (k) / KERNEL_W * h_step) * weight_w + w0 + (k) % KERNEL_W * w_step

// Unrolled, the rows of a large kernel take so many registers that few work-groups share a compute unit.
#ifdef QUADS
#define FACTOR(k) own_factors[(k)*QUADS]
#define EACH_ROW _Pragma("unroll 1")
#else
#define FACTOR(k) factors[k]
#define EACH_ROW _Pragma("unroll")
#endif

// taps_h is 0 if no tap reaches the phase.
kernel void depthwise_last(global const JOIN(STORED_TYPE_, X_KIND) * x, ulong x_offset, global const float* weight,
                           ulong weight_offset, global const float* bias, ulong bias_offset,
                           global JOIN(STORED_TYPE_, Y_KIND) * y, ulong y_offset, long count, int has_bias, int taps_h,
                           int channels, int x_h, int x_w, int y_h, int y_w, int out_h, int out_w, int row0, int column0, int row_step,
                           int column_step, int pad_h, int pad_w, int weight_w, int h0, int h_step, int w0, int w_step,
                           int weight_channel EPILOGUE_PARAMETERS) {
#ifndef QUADS
    const COUNT_T item = (COUNT_T)get_global_id(0);
    if (item >= (COUNT_T)count) return;
#endif
    const int quads = QUADS_OF(channels), strips = (out_w + OUTPUTS - 1) / OUTPUTS, bands = (out_h + ROWS - 1) / ROWS;
#ifdef QUADS
    const int id = get_local_id(0), sections = (quads + QUADS - 1) / QUADS;
    const int quad0 = (int)(get_group_id(0) % (size_t)sections) * QUADS, quad = quad0 + id % QUADS, channel = QUAD_CHANNEL(quad);
    const COUNT_T place = (COUNT_T)(get_group_id(0) / (size_t)sections) * (128 / QUADS) + id / QUADS;
#else
    const int channel = QUAD_CHANNEL((int)(item % (COUNT_T)quads));
    const COUNT_T place = item / (COUNT_T)quads;
#endif
    const COUNT_T line = place / (COUNT_T)strips;
    const int ox0 = (int)(place % (COUNT_T)strips) * OUTPUTS, row = (int)(line % (COUNT_T)bands) * ROWS;
    const COUNT_T image = line / (COUNT_T)bands;
    const int top = row * STRIDE_H - pad_h, left = ox0 * STRIDE_W - pad_w;
    x += x_offset + (ulong)image * x_h * x_w * channels + channel;
#ifdef QUADS
    local float4 factors[QUADS * TAPS];
    weight += weight_offset;
    for (int i = id; i < 4 * QUADS * TAPS; i += 128) {
        const int k = i % TAPS, of = i / TAPS, from = QUAD_CHANNEL(quad0 + of / 4) + of % 4;
        float value = 0;
        if (from < channels && k / KERNEL_W < taps_h) value = weight[(ulong)from * weight_channel + WEIGHT(k)];
        ((local float*)factors)[k * 4 * QUADS + of] = value;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (place >= (COUNT_T)count || quad >= quads) return;
    local const float4* const own_factors = factors + id % QUADS;
#else
    weight += weight_offset + (ulong)channel * weight_channel;
    float4 factors[TAPS];
#pragma unroll
    for (int k = 0; k < TAPS; ++k) {
        global const float* from = weight + WEIGHT(k);
        factors[k] = (float4)(0.0f);
        if (k / KERNEL_W < taps_h)
            factors[k] = (float4)(from[0], from[weight_channel], from[2 * weight_channel], from[3 * weight_channel]);
    }
#endif
    float4 sum[ROWS * OUTPUTS];
#pragma unroll
    for (int e = 0; e < ROWS * OUTPUTS; ++e) sum[e] = (float4)(0.0f);
#define CONVOLVE(LOAD)                                                                                       \
    EACH_ROW for (int r = 0; r < SPAN_H; ++r) {                                                              \
        const int iy = top + r * DILATE_H, inside = (uint)iy < (uint)x_h;                                    \
        float4 v[SPAN_W];                                                                                    \
        _Pragma("unroll") for (int i = 0; i < SPAN_W; ++i) {                                                 \
            const int ix = left + i * DILATE_W;                                                              \
            v[i] = (float4)(0.0f);                                                                           \
            if (inside && (uint)ix < (uint)x_w) v[i] = JOIN(LOAD, X_KIND)(x + ((long)iy * x_w + ix) * channels);   \
        }                                                                                                    \
        _Pragma("unroll") for (int e_y = 0; e_y < ROWS; ++e_y) {                                             \
            const int ky = r - e_y * STRIDE_H;                                                               \
            if (ky < 0 || ky >= KERNEL_H) continue;                                                          \
            _Pragma("unroll") for (int kx = 0; kx < KERNEL_W; ++kx) {                                        \
                const float4 factor = FACTOR(ky * KERNEL_W + kx);                                            \
                _Pragma("unroll") for (int e = 0; e < OUTPUTS; ++e)                                          \
                    sum[e_y * OUTPUTS + e] += v[e * STRIDE_W + kx] * factor;                                 \
            }                                                                                                \
        }                                                                                                    \
    }
    if (FOURS_ALIGNED(X_KIND, x)) {
        CONVOLVE(load_aligned_fours_)
    } else {
        CONVOLVE(load_fours_)
    }
    float4 more = (float4)(0.0f);
    if (has_bias) more = vload4(0, bias + bias_offset + channel);
    y += y_offset;
    const int aligned = FOURS_ALIGNED(Y_KIND, y);
#pragma unroll
    for (int e = 0; e < ROWS * OUTPUTS; ++e) {
        const int oy = row + e / OUTPUTS, ox = ox0 + e % OUTPUTS;
        if (oy < out_h && ox < out_w) {
            const ulong pixel = ((ulong)image * y_h + row0 + oy * row_step) * y_w + column0 + ox * column_step;
            const ulong at = pixel * channels + channel;
            float4 v = sum[e] + more;
            EPILOGUE(v, at);
#ifdef TAIL
            if (channel % 4 != 0) {
                const float last[4] = {v.x, v.y, v.z, v.w};
                for (int i = 4 - TAIL; i < 4; ++i) JOIN(stored_put_, Y_KIND)(y, at + i, last[i]);
                continue;
            }
#endif
            if (aligned)
                JOIN(store_aligned_fours_, Y_KIND)(y + at, v);
            else
                JOIN(store_fours_, Y_KIND)(y + at, v);
        }
    }
}
