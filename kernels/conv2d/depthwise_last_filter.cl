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
// TAIL                 defined where channels are not all in fours: the last quad
//                      begins less than 4 behind the one before
// BAND                 rows of the kernel of a work-group; not defined where all      3
//
// Work-group: QUADS * 4 channels and `lines` rows of dy (counted over all images). QUADS work-items are next to each
// other, and each sums every (256 / QUADS)-th strip of OUTPUTS pixels. Then the slices are added in order. Part p is
// written to parts + p * part_stride. A large kernel has more sums than there are registers: there a work-group has BAND of its
// rows. Local memory: 4 KiB.
#include "common/storage_fours.clh"

#define TAPS (KERNEL_H * KERNEL_W)
#define SLICES (256 / QUADS)
#ifdef TAIL
#define QUAD_CHANNEL(quad) min((quad) * 4, channels - 4)
#define IS_QUAD(quad) ((quad) * 4 < channels)
#define FOURS_ALIGNED(kind, p) 0
#else
#define QUAD_CHANNEL(quad) ((quad) * 4)
#define IS_QUAD(quad) (channel < channels)
#define FOURS_ALIGNED(kind, p) fours_aligned(kind, p)
#endif
// The first row of the kernel that the work-group has, and whether there is one so many rows further.
#ifdef BAND
#define BANDS ((KERNEL_H + BAND - 1) / BAND)
#define FIRST_ROW ((int)(get_group_id(0) % BANDS) * BAND)
#define GROUP (get_group_id(0) / BANDS)
#define HAS_ROW(ky) (first_row + (ky) < KERNEL_H)
#else
#define BAND KERNEL_H
#define FIRST_ROW 0
#define GROUP get_group_id(0)
#define HAS_ROW(ky) 1
#endif

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void depthwise_last_filter(
    global const JOIN(STORED_TYPE_, X_KIND) * x, ulong x_offset, global const JOIN(STORED_TYPE_, DY_KIND) * dy, ulong dy_offset,
    global float* parts, ulong parts_offset, int channels, int batch, int lines, int groups, int h, int w, int oh, int ow,
    int pt, int pl, long part_stride) {
    local float4 sums[256];
    const int id = get_local_id(0), slice = id / QUADS;
    const int quad = (int)(GROUP % (size_t)groups) * QUADS + id % QUADS, channel = QUAD_CHANNEL(quad);
    const int part = (int)(GROUP / (size_t)groups), first_row = FIRST_ROW;
    const int first = part * lines, last = min(batch * oh, first + lines);
    const int live = IS_QUAD(quad);
    x += x_offset + (live ? channel : 0);
    dy += dy_offset + (live ? channel : 0);
    float4 sum[BAND * KERNEL_W];
#pragma unroll
    for (int t = 0; t < BAND * KERNEL_W; ++t) sum[t] = (float4)(0.0f);
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
        const int top = oy * STRIDE_H - pt + first_row * DILATE_H, left = ox * STRIDE_W - pl;                      \
        _Pragma("unroll") for (int ky = 0; ky < BAND; ++ky) {                                                      \
            const int iy = top + ky * DILATE_H, inside = HAS_ROW(ky) && (uint)iy < (uint)h;                        \
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
    if (FOURS_ALIGNED(X_KIND, x) && FOURS_ALIGNED(DY_KIND, dy)) {
        GATHER(load_aligned_fours_)
    } else {
        GATHER(load_fours_)
    }
    parts += parts_offset + (ulong)part * part_stride + (ulong)channel * TAPS + first_row * KERNEL_W;
#pragma unroll
    for (int t = 0; t < BAND * KERNEL_W; ++t) {
        sums[id] = sum[t];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int half_ = SLICES / 2; half_ > 0; half_ /= 2) {
            if (slice < half_) sums[id] += sums[id + half_ * QUADS];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (slice == 0 && live && HAS_ROW(t / KERNEL_W)) {
            const float4 v = sums[id];
            parts[t] = v.x;
            parts[TAPS + t] = v.y;
            parts[2 * TAPS + t] = v.z;
            parts[3 * TAPS + t] = v.w;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
