// SPDX-License-Identifier: MIT
// conv2d_backward_filter.depthwise_last: the filter gradient of depthwise convolutions on channels_last images of
// float, half or bfloat16.
//
//     256 work-items:  QUADS quads of channels x 256 / QUADS slices of the pixels  ->  one sum per channel and tap
//
// Define               meaning                                                        example
// X_KIND, DY_KIND      how x and dy are stored (common/storage.clh)                      1, 1
// QUADS                quads of channels of a work-group, a power of two              16
// OUTPUTS              pixels of a strip                                              4
// KERNEL_H, KERNEL_W   the kernel's size                                              3, 3
// STRIDE_H, STRIDE_W   strides                                                        1, 1
// DILATE_H, DILATE_W   dilations                                                      1, 1
// SPAN                 columns of x that a strip reads                                6
//
// Work-group: QUADS * 4 channels and `lines` rows of dy (counted over all images). QUADS work-items are next to each
// other, and each sums every (256 / QUADS)-th strip of OUTPUTS pixels. Then the slices are added in order. Part p is
// written to parts + p * part_stride. Local memory: 4 KiB.
#include "common/storage_fours.clh"

#define TAPS (KERNEL_H * KERNEL_W)
#define SLICES (256 / QUADS)

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void depthwise_last_filter(
    global const JOIN(STORED_TYPE_, X_KIND) * x, ulong x_offset, global const JOIN(STORED_TYPE_, DY_KIND) * dy, ulong dy_offset,
    global float* parts, ulong parts_offset, int channels, int batch, int lines, int groups, int h, int w, int oh, int ow,
    int pt, int pl, long part_stride) {
    local float4 sums[256];
    const int id = get_local_id(0), slice = id / QUADS;
    const int channel = ((int)(get_group_id(0) % (size_t)groups) * QUADS + id % QUADS) * 4;
    const int part = (int)(get_group_id(0) / (size_t)groups);
    const int first = part * lines, last = min(batch * oh, first + lines);
    const int live = channel < channels;
    x += x_offset + (live ? channel : 0);
    dy += dy_offset + (live ? channel : 0);
    float4 sum[TAPS];
#pragma unroll
    for (int t = 0; t < TAPS; ++t) sum[t] = (float4)(0.0f);
    const int strips = (ow + OUTPUTS - 1) / OUTPUTS, items = live ? (last - first) * strips : 0;
#define GATHER(LOAD)                                                                                               \
    for (int p = slice; p < items; p += SLICES) {                                                                  \
        const int line = p / strips, ox = (p - line * strips) * OUTPUTS;                                           \
        const int image = (first + line) / oh, oy = first + line - image * oh;                                     \
        float4 d[OUTPUTS];                                                                                         \
        _Pragma("unroll") for (int e = 0; e < OUTPUTS; ++e) {                                                      \
            d[e] = (float4)(0.0f);                                                                                 \
            if (ox + e < ow) d[e] = JOIN(LOAD, DY_KIND)(dy + ((long)(first + line) * ow + ox + e) * channels);           \
        }                                                                                                          \
        const int top = oy * STRIDE_H - pt, left = ox * STRIDE_W - pl;                                             \
        _Pragma("unroll") for (int ky = 0; ky < KERNEL_H; ++ky) {                                                  \
            const int iy = top + ky * DILATE_H, inside = (uint)iy < (uint)h;                                       \
            float4 v[SPAN];                                                                                        \
            _Pragma("unroll") for (int i = 0; i < SPAN; ++i) {                                                     \
                v[i] = (float4)(0.0f);                                                                             \
                if (inside && (uint)(left + i) < (uint)w)                                                          \
                    v[i] = JOIN(LOAD, X_KIND)(x + (((long)image * h + iy) * w + left + i) * channels);                   \
            }                                                                                                      \
            _Pragma("unroll") for (int kx = 0; kx < KERNEL_W; ++kx) {                                              \
                _Pragma("unroll") for (int e = 0; e < OUTPUTS; ++e)                                                \
                    sum[ky * KERNEL_W + kx] += d[e] * v[e * STRIDE_W + kx * DILATE_W];                             \
            }                                                                                                      \
        }                                                                                                          \
    }
    if (fours_aligned(X_KIND, x) && fours_aligned(DY_KIND, dy)) {
        GATHER(load_aligned_fours_)
    } else {
        GATHER(load_fours_)
    }
    parts += parts_offset + (ulong)part * part_stride + (ulong)channel * TAPS;
#pragma unroll
    for (int t = 0; t < TAPS; ++t) {
        sums[id] = sum[t];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int half_ = SLICES / 2; half_ > 0; half_ /= 2) {
            if (slice < half_) sums[id] += sums[id + half_ * QUADS];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (slice == 0 && live) {
            const float4 v = sums[id];
            parts[t] = v.x;
            parts[TAPS + t] = v.y;
            parts[2 * TAPS + t] = v.z;
            parts[3 * TAPS + t] = v.w;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
