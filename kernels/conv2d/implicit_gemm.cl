// SPDX-License-Identifier: MIT
// conv2d.implicit_gemm and conv2d_backward_data.implicit_gemm: a convolution, or one phase of a data gradient, as a matrix
// product whose right side is gathered from the image while it is multiplied.
//
//          BN output pixels
//        +---------+           rows     output channels of a group
//     BM | 4x4 ... |           columns  output pixels of all images
//        +---------+           K        blocks of BK input channels, within them the taps, within those the channels
//
// Step s of BK is channel block s / TAPS and tap s % TAPS, so that successive steps read the same lines of the image. With
// FLAT_CHANNELS (few channels) K is taps, within them channels, without gaps.
//
// Define               meaning                                                            example
// TX, TY, GM, GN, BK   see matrix/float_tile.clh                                          16, 16, 2, 2, 8
// KERNEL_H, KERNEL_W   taps of the kernel                                                 3, 3
// FLAT_CHANNELS        0, or the channels of a group                                      0
// CHANNEL_TAIL         1 if channels do not fill blocks                                   0
// X_QUADS              1 for 1x1 kernels of step 1 whose planes are multiples of 4 pixels: the image is read as float4   0
// Y_DENSE              1 if y is written without gaps                                     1
// Y_QUADS              1 if, moreover, its planes are multiples of 4 pixels               1
// A_STORED, C_STORED   types of x and of y (common/storage.clh)                           0, 0
//
// Work-group: one tile, for one part of K (steps_part steps). The operands of the next step travel in registers while the
// current one is multiplied, with one barrier per step. Weights are packed as [group][K][w_row] (implicit_gemm_pack.cl).
// Work-groups are numbered by row tile, then column tile, then (group, part of K). If K is split, a part is written to y at
// part * part_stride. Local memory: see matrix/float_tile.clh.
#include "common/storage_fours.clh"
#define TILE_GAP 0
#include "matrix/float_tile.clh"
#include "matrix/images.clh"

#define TAPS (KERNEL_H * KERNEL_W)
#define A_QUADS (BM * BK / 4 / THREADS)
#define A_STEP (THREADS * 4 / BM)
#if X_QUADS
#define B_COUNT 1
#define B_STEP (THREADS * 4 / BN)
#elif BN > THREADS
#define B_COUNT (BN / THREADS)
#define B_STEP 1
#else
#define B_COUNT 1
#define B_STEP (THREADS / BN)
#endif
#define B_LOADS (BK / B_STEP)
// A coordinate that stays outside of every image, whatever tap is added.
#define NOWHERE (-(1 << 30))

// Statements of the kernel, on its locals. With functions in place of these and of those of split_filter.cl,
// training steps took 1 % longer on an H200.

// Reads step `s` (channels from c0 on, tap (ky, kx)) into registers.
#define FETCH_WEIGHTS                                                  \
    _Pragma("unroll") for (int q = 0; q < A_QUADS; ++q) a_next[q] =    \
        *(global const float4*)(w_from + (ulong)(q * A_STEP) * w_row); \
    w_from += (ulong)BK * w_row;
#if X_QUADS
#define FETCH_IMAGE(s)                                                         \
    _Pragma("unroll") for (int r = 0; r < B_LOADS; ++r) {                      \
        const int c = (s)*BK + b_row + r * B_STEP;                             \
        b_next[r] = (float4)(0.0f);                                            \
        if (b_live && (!CHANNEL_TAIL || c < group_in))                         \
            b_next[r] = x_aligned ? A_ALIGNED_FOURS(x_from + (ulong)c * plane) \
                                  : A_FOURS(x_from + (ulong)c * plane);        \
    }
#elif FLAT_CHANNELS
#define FETCH_IMAGE(s)                                                                                   \
    _Pragma("unroll") for (int r = 0; r < B_LOADS; ++r) {                                                \
        const int k = (s)*BK + b_row + r * B_STEP;                                                       \
        const int tap = k / FLAT_CHANNELS, c = k % FLAT_CHANNELS;                                        \
        const int ty_ = tap / KERNEL_W * images.dilate_h, tx_ = tap % KERNEL_W * images.dilate_w;        \
        _Pragma("unroll") for (int i = 0; i < B_COUNT; ++i) {                                            \
            const int iy = top[i] + ty_, ix = left[i] + tx_;                                             \
            const int inside = tap < TAPS && (uint)iy < (uint)images.x_h && (uint)ix < (uint)images.x_w; \
            b_next[i][r] = inside ? A_AT(x_from[i], c * plane + iy * images.x_w + ix) : 0.0f;            \
        }                                                                                                \
    }
#else
#define FETCH_IMAGE(s)                                                                      \
    _Pragma("unroll") for (int i = 0; i < B_COUNT; ++i) {                                   \
        const int iy = top[i] + ky * images.dilate_h, ix = left[i] + kx * images.dilate_w;  \
        const int inside = (uint)iy < (uint)images.x_h && (uint)ix < (uint)images.x_w;      \
        global const A_T* from = x_from[i] + ((c0 + b_row) * plane + iy * images.x_w + ix); \
        _Pragma("unroll") for (int r = 0; r < B_LOADS; ++r) b_next[i][r] =                  \
            inside && (!CHANNEL_TAIL || c0 + b_row + r * B_STEP < group_in)                 \
                ? A_AT(from, (ulong)(r * B_STEP) * plane)                                   \
                : 0.0f;                                                                     \
    }
#endif
// Puts what was read into a buffer.
#if X_QUADS
#define KEEP_IMAGE(buffer)                                \
    _Pragma("unroll") for (int r = 0; r < B_LOADS; ++r) * \
        (local float4*)(b_tile + ((buffer)*BK + b_row + r * B_STEP) * LDB + b_column) = b_next[r];
#else
#define KEEP_IMAGE(buffer)                                                                                  \
    _Pragma("unroll") for (int i = 0; i < B_COUNT; ++i) _Pragma("unroll") for (int r = 0; r < B_LOADS; ++r) \
        b_tile[((buffer)*BK + b_row + r * B_STEP) * LDB + b_column + i * THREADS] = b_next[i][r];
#endif
#define KEEP(buffer)                                                                                    \
    _Pragma("unroll") for (int q = 0; q < A_QUADS; ++q) *                                               \
        (local float4*)(a_tile + ((buffer)*BK + a_row + q * A_STEP) * LDA + a_column) = a_next[q];      \
    KEEP_IMAGE(buffer)
// Writes column j of the tile to y: STORE_QUAD four pixels at once, STORE the pixel in component `lane`, e behind the first.
#define STORE_QUAD                                                                                       \
    if (pixel0 >= pixels) continue;                                                                      \
    const int image = pixel0 / out_plane;                                                                \
    const ulong base = ((ulong)image * groups + g) * group_out * y_plane + (pixel0 - image * out_plane); \
    const int y_aligned = (y_offset & 3) == 0;                                                           \
    _Pragma("unroll") for (int i = 0; i < 4 * GM; ++i) {                                                 \
        const int m = m0 + TILE_ROW(i);                                                                  \
        if (m < group_out) {                                                                             \
            const ulong at = base + (ulong)m * y_plane;                                                  \
            float4 v = sum[i][j];                                                                        \
            if (has_bias) v += bias[m];                                                                  \
            EPILOGUE(v.x, at);                                                                           \
            EPILOGUE(v.y, at + 1);                                                                       \
            EPILOGUE(v.z, at + 2);                                                                       \
            EPILOGUE(v.w, at + 3);                                                                       \
            if (y_aligned)                                                                               \
                C_PUT_ALIGNED_FOURS(y + at, v);                                                          \
            else                                                                                         \
                C_PUT_FOURS(y + at, v);                                                                  \
        }                                                                                                \
    }
#define STORE(lane, e)                                                                                  \
    if (pixel0 + e < pixels) {                                                                          \
        const int image = (pixel0 + e) / out_plane, in_plane = (pixel0 + e) - image * out_plane;        \
        const int place = Y_DENSE ? in_plane : place_in_y(images, 0, in_plane);                            \
        const ulong base = ((ulong)image * groups + g) * group_out * y_plane + place;                   \
        _Pragma("unroll") for (int i = 0; i < 4 * GM; ++i) {                                            \
            const int m = m0 + TILE_ROW(i);                                                             \
            if (m < group_out) {                                                                        \
                const ulong at = base + (ulong)m * y_plane;                                             \
                float v = sum[i][j].lane;                                                               \
                if (has_bias) v += bias[m];                                                             \
                EPILOGUE(v, at);                                                                        \
                C_PUT(y, at, v);                                                                        \
            }                                                                                           \
        }                                                                                               \
    }

kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void implicit_gemm(
    global const A_T* x, ulong x_offset, global const float* w, ulong w_offset, global const float* bias,
    ulong bias_offset, global C_T* y, ulong y_offset, int has_bias, int pixels, int groups, int group_in,
    int group_out, const Images sizes, int w_row, int steps, int steps_part,
    int tiles_m, int tiles_n, long part_stride EPILOGUE_PARAMETERS) {
    local float a_tile[2 * BK * LDA] __attribute__((aligned(16)));
    local float b_tile[2 * BK * LDB] __attribute__((aligned(16)));
    const int id = get_local_id(0), tx = tile_x(id), ty = tile_y(id);
    const int m0 = (int)get_group_id(0) % tiles_m * BM;
    const int n0 = (int)get_group_id(0) / tiles_m % tiles_n * BN;
    const int z = (int)get_group_id(0) / tiles_m / tiles_n, g = z % groups, part = z / groups;
    const Images images = sizes;  // in registers
    const int plane = images.x_h * images.x_w, out_plane = images.out_h * images.out_w;
    const int first_step = part * steps_part, last_step = min(steps, first_step + steps_part);

    // Where this work-item's quads of the weights come from and go to.
    const int a_row = id / (BM / 4), a_column = id % (BM / 4) * 4;
    global const float* w_from =
        w + w_offset + ((ulong)g * steps + first_step) * BK * w_row + (ulong)a_row * w_row + min(m0 + a_column, w_row - 4);
    float4 a_next[A_QUADS];

    // And its columns of the image: a pixel, or four, for every B_STEP-th channel.
#if X_QUADS
    const int b_row = id / (BN / 4), b_column = id % (BN / 4) * 4;
    const int b_live = n0 + b_column < pixels;
    const int b_image = (n0 + b_column) / out_plane;
    const int x_aligned = (x_offset & 3) == 0;
    global const A_T* x_from =
        x + x_offset + ((ulong)b_image * groups + g) * group_in * plane + (n0 + b_column - b_image * out_plane);
    float4 b_next[B_LOADS];
#else
    const int b_row = id / BN, b_column = id % BN;
    int top[B_COUNT], left[B_COUNT];
    global const A_T* x_from[B_COUNT];
    float b_next[B_COUNT][B_LOADS];
#pragma unroll
    for (int i = 0; i < B_COUNT; ++i) {
        const int pixel = n0 + b_column + i * THREADS;
        const int image = pixel / out_plane, in_plane = pixel - image * out_plane, row = in_plane / images.out_w;
        top[i] = pixel < pixels ? row * images.stride_h - images.pad_h : NOWHERE;
        left[i] = (in_plane - row * images.out_w) * images.stride_w - images.pad_w;
        x_from[i] = x + x_offset + ((ulong)(pixel < pixels ? image : 0) * groups + g) * group_in * plane;
    }
#endif

    float4 sum[4 * GM][GN];
    TILE_CLEAR
#if !FLAT_CHANNELS && !X_QUADS
    int c0 = first_step / TAPS * BK;
    int ky = first_step % TAPS / KERNEL_W, kx = first_step % TAPS % KERNEL_W;
#endif
    if (first_step < last_step) {
        FETCH_WEIGHTS
        FETCH_IMAGE(first_step)
        KEEP(0)
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int buffer = 0;
    for (int step = first_step; step < last_step; ++step) {
        const int more = step + 1 < last_step;
        if (more) {
#if !FLAT_CHANNELS && !X_QUADS
            if (++kx == KERNEL_W) {
                kx = 0;
                if (++ky == KERNEL_H) {
                    ky = 0;
                    c0 += BK;
                }
            }
#endif
            FETCH_WEIGHTS
            FETCH_IMAGE(step + 1)
        }
        TILE_MULTIPLY(buffer)
        buffer ^= 1;
        if (more) {
            KEEP(buffer)
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    const int y_plane = images.y_h * images.y_w;
    y += y_offset + (ulong)part * part_stride;
    bias += bias_offset + g * group_out;
#pragma unroll
    for (int j = 0; j < GN; ++j) {
        const int pixel0 = n0 + TILE_COLUMN(j);
#if Y_QUADS
        STORE_QUAD
#else
        STORE(x, 0)
        STORE(y, 1)
        STORE(z, 2)
        STORE(w, 3)
#endif
    }
}
