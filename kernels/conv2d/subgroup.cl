// SPDX-License-Identifier: MIT
// conv2d.subgroup and conv2d_backward_data.subgroup: the computation of implicit_gemm.cl by sub-groups without local memory.
// common/subgroup.clh has the picture of the tile.
//
//   rows     output channels of a group
//   columns  output pixels of all images; those of a lane are SG apart
//   K        as in implicit_gemm.cl, in steps of BK; weights are packed as [group][K][w_row]
//
// Define               meaning                                               example
// SG, TM, TN, GROUPS   see common/subgroup.clh                               16, 8, 4, 8
// BK                   channels per step of K                                8
// KERNEL_H, KERNEL_W   the kernel's size                                     3, 3
// FLAT_CHANNELS        0, or the channels of a group if K has no gaps        0
// CHANNEL_TAIL         1 if channels do not fill blocks of BK                0
// DIRECT               1 for a 1x1 kernel with step 1, whose pixels are contiguous   0
// Y_DENSE              1 if y is written without gaps                        1
//
// In each step of K a lane reads its pixels of one channel and tap, and one of the tile's weights, which are broadcast.
// Work-groups are numbered by row tile, then column tile, then (group, part of K). If K is split, a part is written to y at
// part * part_stride. Reads beyond w_row return the last weights, and reads beyond the images the last pixel; their results
// are not written. Local memory: none.
#include "common/inline.clh"
#include "common/storage.clh"
#include "common/subgroup.clh"
#include "matrix/images.clh"

#define TAPS (KERNEL_H * KERNEL_W)

// The channels of a group in one image.
typedef struct {
    int h, w, plane, channels, dilate_h, dilate_w;
} Image;

// Goes from channels c0 on and tap (ky, kx) to those of the next step.
INLINE void next_step(int* c0, int* ky, int* kx) {
    if (++*kx == KERNEL_W) {
        *kx = 0;
        if (++*ky == KERNEL_H) {
            *ky = 0;
            *c0 += BK;
        }
    }
}

// Reads a lane's weights of one row of K, which lie at w, to u. Unless the tile's rows are `whole`, `last` is the last weight.
INLINE void read_weights(global const float* w, int whole, int last, int lane, float* u) {
#pragma unroll
    for (int h = 0; h < ROW_READS; ++h) u[h] = whole ? lane_float(w + h * SG) : w[min(h * SG + lane, last)];
}

#if FLAT_CHANNELS
// Reads a lane's pixels of row k of K, whose corners are (top, left) and whose group's channels are at `from`.
INLINE void read_pixels(global const A_T** from, const int* top, const int* left, Image x, int k, float* b_now) {
    const int tap = k / FLAT_CHANNELS, c = k % FLAT_CHANNELS;
    const int down = tap / KERNEL_W * x.dilate_h, across = tap % KERNEL_W * x.dilate_w;
#pragma unroll
    for (int j = 0; j < TN; ++j) {
        const int iy = top[j] + down, ix = left[j] + across;
        const int there = tap < TAPS && (uint)iy < (uint)x.h && (uint)ix < (uint)x.w;
        b_now[j] = there ? A_AT(from[j], c * x.plane + iy * x.w + ix) : 0.0f;
    }
}
#elif DIRECT
// Reads a lane's pixels of channel c. If all pixels of the strip are contiguous, `strip` is where its channels are, else 0.
INLINE void read_pixels(global const A_T** from, global const A_T* strip, Image x, int c, float* b_now) {
    const int live = !CHANNEL_TAIL || c < x.channels;
#if A_STORED == 0
    if (live && strip != 0) {
        lane_floats(b_now, strip + (ulong)c * x.plane);
        return;
    }
#endif
#pragma unroll
    for (int j = 0; j < TN; ++j) b_now[j] = live ? A_AT(from[j], (ulong)c * x.plane) : 0.0f;
}
#else
// Where a lane's pixels of channel c and tap (ky, kx) are, and whether they are inside of the image.
INLINE void find_tap(global const A_T** corner, const int* top, const int* left, Image x, int c, int2 tap, int* inside,
                     global const A_T** from) {
#pragma unroll
    for (int j = 0; j < TN; ++j) {
        const int iy = top[j] + tap.x * x.dilate_h, ix = left[j] + tap.y * x.dilate_w;
        inside[j] = (uint)iy < (uint)x.h && (uint)ix < (uint)x.w;
        from[j] = corner[j] + (c * x.plane + iy * x.w + ix);
    }
}
// Reads them of the channel r behind; `live` is 0 if there is no such channel.
INLINE void read_pixels(global const A_T** from, const int* inside, int live, Image x, int r, float* b_now) {
#pragma unroll
    for (int j = 0; j < TN; ++j) b_now[j] = inside[j] && live ? A_AT(from[j], (ulong)r * x.plane) : 0.0f;
}
#endif

kernel __attribute__((reqd_work_group_size(GROUPS * SG, 1, 1))) __attribute__((intel_reqd_sub_group_size(SG))) void
conv2d_subgroup(global const A_T* x, ulong x_offset, global const float* w, ulong w_offset, global const float* bias,
                ulong bias_offset, global C_T* y, ulong y_offset, int has_bias, int pixels, int groups,
                int group_in, int group_out, const Images images, int w_row, int steps, int steps_part, int tiles_m,
                int tiles_n, long part_stride EPILOGUE_PARAMETERS) {
    const int lane = get_sub_group_local_id();
    const int m0 = (int)get_group_id(0) % tiles_m * BM + get_sub_group_id() * TM;
    const int n0 = (int)get_group_id(0) / tiles_m % tiles_n * BN;
    const int z = (int)get_group_id(0) / tiles_m / tiles_n, g = z % groups, part = z / groups;
    const Image image = {images.x_h, images.x_w, images.x_h * images.x_w, group_in, images.dilate_h, images.dilate_w};
    const int out_plane = images.out_h * images.out_w, y_plane = images.y_h * images.y_w;
    const int first_step = part * steps_part, last_step = min(steps, first_step + steps_part);
    if (m0 >= group_out) return;

    w += w_offset + ((ulong)g * steps + first_step) * BK * w_row + m0;
    const int whole_rows = m0 + ROW_READS * SG <= w_row;
    x += x_offset + (ulong)g * group_in * image.plane;
    const ulong image_size = (ulong)groups * group_in * image.plane;
    global const A_T* x_from[TN];
#if DIRECT
    const int n_image = n0 / out_plane, is_strip = n0 + BN <= pixels && n_image == (n0 + BN - 1) / out_plane;
    global const A_T* strip = is_strip ? x + (ulong)n_image * image_size + n0 % out_plane : 0;
#else
    int top[TN], left[TN];
#endif
#pragma unroll
    for (int j = 0; j < TN; ++j) {
        const int pixel = min(n0 + j * SG + lane, pixels - 1);
        const int n = pixel / out_plane, in_plane = pixel - n * out_plane;
        x_from[j] = x + (ulong)n * image_size;
#if DIRECT
        x_from[j] += in_plane;
#else
        const int row = in_plane / images.out_w;
        top[j] = row * images.stride_h - images.pad_h;
        left[j] = (in_plane - row * images.out_w) * images.stride_w - images.pad_w;
#endif
    }

    float sum[TM][TN], b_now[TN], u[ROW_READS];
    SUMS_CLEAR
#define WEIGHT(i) sub_group_broadcast(u[(i) / SG], (i) % SG)

#if !FLAT_CHANNELS
    int c0 = first_step / TAPS * BK;
    int ky = first_step % TAPS / KERNEL_W, kx = first_step % TAPS % KERNEL_W;
#endif
    for (int step = first_step; step < last_step; ++step) {
#if !FLAT_CHANNELS && !DIRECT
        int inside[TN];
        global const A_T* from[TN];
        find_tap(x_from, top, left, image, c0, (int2)(ky, kx), inside, from);
#endif
#pragma unroll
        for (int r = 0; r < BK; ++r) {
            read_weights(w + r * w_row, whole_rows, w_row - 1 - m0, lane, u);
#if FLAT_CHANNELS
            read_pixels(x_from, top, left, image, step * BK + r, b_now);
#elif DIRECT
            read_pixels(x_from, strip, image, c0 + r, b_now);
#else
            read_pixels(from, inside, !CHANNEL_TAIL || c0 + r < group_in, image, r, b_now);
#endif
            SUMS_ADD(WEIGHT)
        }
        w += BK * w_row;
#if !FLAT_CHANNELS
        next_step(&c0, &ky, &kx);
#endif
    }

    y += y_offset + (ulong)part * part_stride;
    bias += bias_offset + g * group_out;
#pragma unroll
    for (int j = 0; j < TN; ++j) {
        const int pixel = n0 + j * SG + lane;
        if (pixel >= pixels) continue;
        const int n = pixel / out_plane, in_plane = pixel - n * out_plane;
        const int place = Y_DENSE ? in_plane : place_in_y(images, 0, in_plane);
        const ulong base = ((ulong)n * groups + g) * group_out * y_plane + place;
#pragma unroll
        for (int i = 0; i < TM; ++i) {
            const int m = m0 + i;
            if (m < group_out) {
                const ulong at = base + (ulong)m * y_plane;
                float v = sum[i][j];
                if (has_bias) v += bias[m];
                EPILOGUE(v, at);
                C_PUT(y, at, v);
            }
        }
    }
}
