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
#include "common/storage.clh"
#include "common/subgroup.clh"

#define TAPS (KERNEL_H * KERNEL_W)

kernel __attribute__((reqd_work_group_size(GROUPS * SG, 1, 1))) __attribute__((intel_reqd_sub_group_size(SG))) void
conv2d_subgroup(global const A_T* x, ulong x_offset, global const float* w, ulong w_offset, global const float* bias,
                ulong bias_offset, global C_T* y, ulong y_offset, int has_bias, int pixels, int groups,
                int group_in, int group_out, int x_h, int x_w, int y_h, int y_w, int out_h, int out_w, int row0,
                int column0, int row_step, int column_step, int stride_h, int stride_w, int pad_h, int pad_w,
                int dilate_h, int dilate_w, int w_row, int steps, int steps_part, int tiles_m, int tiles_n,
                long part_stride EPILOGUE_PARAMETERS) {
    const int lane = get_sub_group_local_id();
    const int m0 = (int)get_group_id(0) % tiles_m * BM + get_sub_group_id() * TM;
    const int n0 = (int)get_group_id(0) / tiles_m % tiles_n * BN;
    const int z = (int)get_group_id(0) / tiles_m / tiles_n, g = z % groups, part = z / groups;
    const int plane = x_h * x_w, out_plane = out_h * out_w;
    const int first_step = part * steps_part, last_step = min(steps, first_step + steps_part);
    if (m0 >= group_out) return;

    w += w_offset + ((ulong)g * steps + first_step) * BK * w_row + m0;
    const int whole_rows = m0 + ROW_READS * SG <= w_row;
    x += x_offset;
    global const A_T* x_from[TN];
#if DIRECT
    // Whether all pixels of the strip are contiguous.
    const int strip = n0 + BN <= pixels && n0 / out_plane == (n0 + BN - 1) / out_plane;
#else
    int top[TN], left[TN];
#endif
#pragma unroll
    for (int j = 0; j < TN; ++j) {
        const int pixel = min(n0 + j * SG + lane, pixels - 1);
        const int image = pixel / out_plane, in_plane = pixel - image * out_plane;
        x_from[j] = x + ((ulong)image * groups + g) * group_in * plane;
#if DIRECT
        x_from[j] += in_plane;
#else
        const int row = in_plane / out_w;
        top[j] = row * stride_h - pad_h;
        left[j] = (in_plane - row * out_w) * stride_w - pad_w;
#endif
    }
#if DIRECT
    global const A_T* strip_from = x + ((ulong)(n0 / out_plane) * groups + g) * group_in * plane + n0 % out_plane;
#endif

    float sum[TM][TN], b_now[TN], u[ROW_READS];
    SUMS_CLEAR
#define READ_WEIGHTS(r)                                                               \
    _Pragma("unroll") for (int h = 0; h < ROW_READS; ++h) u[h] =                      \
        whole_rows ? LANE_FLOAT(w + (r)*w_row + h * SG) : w[(r)*w_row + min(h * SG + lane, w_row - 1 - m0)];
#define WEIGHT(i) sub_group_broadcast(u[(i) / SG], (i) % SG)

#if !FLAT_CHANNELS
    int c0 = first_step / TAPS * BK;
    int ky = first_step % TAPS / KERNEL_W, kx = first_step % TAPS % KERNEL_W;
#endif
    for (int step = first_step; step < last_step; ++step) {
#if !FLAT_CHANNELS && !DIRECT
        int inside[TN];
        global const A_T* from[TN];
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int iy = top[j] + ky * dilate_h, ix = left[j] + kx * dilate_w;
            inside[j] = (uint)iy < (uint)x_h && (uint)ix < (uint)x_w;
            from[j] = x_from[j] + (c0 * plane + iy * x_w + ix);
        }
#endif
#pragma unroll
        for (int r = 0; r < BK; ++r) {
            READ_WEIGHTS(r)
#if FLAT_CHANNELS
            const int k = step * BK + r, tap = k / FLAT_CHANNELS, c = k % FLAT_CHANNELS;
            const int down = tap / KERNEL_W * dilate_h, across = tap % KERNEL_W * dilate_w;
#pragma unroll
            for (int j = 0; j < TN; ++j) {
                const int iy = top[j] + down, ix = left[j] + across;
                const int there = tap < TAPS && (uint)iy < (uint)x_h && (uint)ix < (uint)x_w;
                b_now[j] = there ? A_AT(x_from[j], c * plane + iy * x_w + ix) : 0.0f;
            }
#elif DIRECT
            const int live = !CHANNEL_TAIL || c0 + r < group_in;
#if A_STORED == 0
            if (live && strip) {
                LANE_FLOATS(b_now, strip_from + (ulong)(c0 + r) * plane)
            } else
#endif
            {
#pragma unroll
                for (int j = 0; j < TN; ++j) b_now[j] = live ? A_AT(x_from[j], (ulong)(c0 + r) * plane) : 0.0f;
            }
#else
#pragma unroll
            for (int j = 0; j < TN; ++j)
                b_now[j] = inside[j] && (!CHANNEL_TAIL || c0 + r < group_in) ? A_AT(from[j], (ulong)r * plane) : 0.0f;
#endif
            SUMS_ADD(WEIGHT)
        }
        w += BK * w_row;
#if !FLAT_CHANNELS
        if (++kx == KERNEL_W) {
            kx = 0;
            if (++ky == KERNEL_H) {
                ky = 0;
                c0 += BK;
            }
        }
#endif
    }

    const int y_plane = y_h * y_w;
    y += y_offset + (ulong)part * part_stride;
    bias += bias_offset + g * group_out;
#pragma unroll
    for (int j = 0; j < TN; ++j) {
        const int pixel = n0 + j * SG + lane;
        if (pixel >= pixels) continue;
        const int image = pixel / out_plane, in_plane = pixel - image * out_plane;
        const int row = Y_DENSE ? 0 : in_plane / out_w;
        const int place = Y_DENSE ? in_plane
                                  : (row0 + row * row_step) * y_w + column0 + (in_plane - row * out_w) * column_step;
        const ulong base = ((ulong)image * groups + g) * group_out * y_plane + place;
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
