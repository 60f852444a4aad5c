// SPDX-License-Identifier: MIT
// conv2d.wgmma_split and conv2d_backward_data.wgmma_split (mma_split): a convolution, or one phase of a data gradient, in float
// on tensor cores over plain images, which are split into halves while they are multiplied.
//
//             128 output pixels: two blocks of 64
//           +---------+---------+
//   64 * WM |         |         |   rows     output channels
//           |         |         |   columns  output pixels of all images
//           +---------+---------+   K        input channels, within them taps, 64 per step; BLOCKED: see below
//   WM 2: warpgroups one above the other; WM 1: beside each other
//
// Columns 2 i and 2 i + 1 of a block are its pixels PIXEL(i) and PIXEL(i) + 32. So a warp reads 32 contiguous pixels, and a
// work-item ends with eight contiguous ones (Y_QUADS), or with four pairs.
//
// Define               meaning                                                            example
// WM                   rows of the tile in 64                                             2
// PRODUCTS             3: exact float; 1: tf32, of upper halves alone (halves.clh)        3
// KERNEL_H, KERNEL_W   taps of the kernel                                                 3, 3
// BLOCKED              1 if K is blocks of 64 channels, within them taps, so that a step
//                      has one tap: if channels fill steps, or there is one tap           1
// PLANE                x_h * x_w                                                          3136
// CHANNEL_TAIL         1 if channels do not fill the last step                            0
// Y_QUADS              1 if y is written without gaps and its planes are multiples of four pixels   1
// MMA                  see unit.clh                                                       0
//
// Work-group: one tile, for one part of K (steps_part steps). While the unit multiplies step t, the work-items split the
// pixels of step t + 1, which were read to registers during step t - 1. Each column has a scale of its own per step. Sums of
// 64 of K are the tensor core's; the rest is added in float outside of it, because the tensor core rounds toward zero.
// Weights are packed by split_pack.cl.
// Local memory: 2 * (BM + 128) * 256 bytes (half of that with PRODUCTS 1), and 3.5 KiB.
#include "matrix/copies.clh"
#include "matrix/split_tile.clh"
#include "matrix/images.clh"

#if Y_QUADS
#define PIXEL(i) (((i)&3) * 8 + ((i) >> 2))
#else
#define PIXEL(i) (i)
#endif
#define A_TILE UNIT_ROWS
#define A_STEP UNIT_STEP(32)
#define B_TILE UNIT_COLUMNS
#define B_STEP UNIT_STEP(2048)

// Statements of the kernel, on its locals.

#if BLOCKED
#define TAPS (KERNEL_H * KERNEL_W)
#define READ(t)                                                                                          \
    {                                                                                                    \
        const int channel = (t) / TAPS * 64, tap = (t) % TAPS, ky = tap / KERNEL_W, kx = tap % KERNEL_W; \
        const int far = channel * plane + ky * images.dilate_h * images.x_w + kx * images.dilate_w;      \
        const int inside0 = mask[0] >> ky & mask[0] >> (16 + kx) & 1;                                    \
        const int inside1 = mask[1] >> ky & mask[1] >> (16 + kx) & 1;                                    \
        global const float *from0 = x + (base[0] + far), *from1 = x + (base[1] + far);                   \
        _Pragma("unroll") for (int i = 0; i < 16; ++i) {                                                 \
            const int live = !CHANNEL_TAIL || channel + k0 + 4 * i < channels_in;                        \
            next[2 * i] = next[2 * i + 1] = 0;                                                           \
            if (inside0 && live) next[2 * i] = from0[4 * i * PLANE];                                     \
            if (inside1 && live) next[2 * i + 1] = from1[4 * i * PLANE];                                 \
        }                                                                                                \
    }
#else
INLINE uint is_inside(uint mask, int2 e) {
    return mask >> (e.y & 255) & mask >> (e.y >> 8) & 1;
}
#define READ(t)                                                        \
    _Pragma("unroll") for (int i = 0; i < 16; ++i) {                   \
        const int2 e = table[(t)*64 + 4 * i];                          \
        next[2 * i] = next[2 * i + 1] = 0;                             \
        if (is_inside(mask[0], e)) next[2 * i] = x[base[0] + e.x];     \
        if (is_inside(mask[1], e)) next[2 * i + 1] = x[base[1] + e.x]; \
    }
#endif
#define COPY_WEIGHTS(t, stage)                                              \
    {                                                                       \
        _Pragma("unroll") for (int i = 0; i < PLANES * A_PLANE / 4096; ++i) \
            COPY_16(tiles_at + (stage)*STAGE + id * 16 + i * 4096,          \
                       weights + (long)(t) * (PLANES * A_PLANE) + i * 4096) \
        COPY_COMMIT                                                         \
    }
// The largest magnitude of every column, then halves of all of them. One barrier inside, and one between two of
// these.
#define KEEP(stage)                                                                \
    {                                                                              \
        float most0 = 0, most1 = 0;                                                \
        _Pragma("unroll") for (int i = 0; i < 16; ++i) {                           \
            most0 = fmax(most0, fabs(next[2 * i]));                                \
            most1 = fmax(most1, fabs(next[2 * i + 1]));                            \
        }                                                                          \
        uint m0_ = as_uint(most0), m1_ = as_uint(most1);                           \
        *(local uint2*)(largest + k0 * BN + column) = (uint2)(m0_, m1_);           \
        barrier(CLK_LOCAL_MEM_FENCE);                                              \
        _Pragma("unroll") for (int i = 0; i < 4; ++i) {                            \
            const uint2 other = *(local const uint2*)(largest + i * BN + column);  \
            m0_ = max(m0_, other.x);                                               \
            m1_ = max(m1_, other.y);                                               \
        }                                                                          \
        if (k0 == 0) {                                                             \
            unscale[(stage)*BN + column] = split_unscale_cut(m0_);                 \
            unscale[(stage)*BN + column + 1] = split_unscale_cut(m1_);             \
        }                                                                          \
        const float s0 = split_scale(m0_), s1 = split_scale(m1_);                  \
        local uchar* to = tiles + (stage)*STAGE + PLANES * A_PLANE + block * 8192; \
        _Pragma("unroll") for (int i = 0; i < 16; ++i) {                           \
            const float a = next[2 * i] * s0, b = next[2 * i + 1] * s1;            \
            const int at = unit_at(k0 + 4 * i, lane >> 2) + (lane & 3) * 4;        \
            SPLIT_STORE(a, b, to + at, to + B_PLANE + at)                          \
        }                                                                          \
    }
#if WM == 2
#define MULTIPLY_STEP                                                                                               \
    MULTIPLY(A_TILE(at + warpgroup * 8192), A_TILE(at + A_PLANE + warpgroup * 8192), B_TILE(at + PLANES * A_PLANE), \
             B_TILE(at + PLANES * A_PLANE + B_PLANE), 0, 1)
#else
#define MULTIPLY_STEP                                                                            \
    MULTIPLY(A_TILE(at), A_TILE(at + A_PLANE), B_TILE(at + PLANES * A_PLANE + warpgroup * 8192), \
             B_TILE(at + PLANES * A_PLANE + B_PLANE + warpgroup * 8192), 0, 1)
#endif
INLINE int sum_at(int q, int half_, int j) {
    return 4 * ((q >> 2) * 8 + (q & 1) * 4 + j) + 2 * half_ + (q >> 1 & 1);
}
#define PLACE_AT(q, j) \
    ((WM == 2 ? (q) >> 2 : warpgroup) * 64 + ((q) >> 1 & 1) * 32 + PIXEL(4 * (((q)&1) * 4 + (j)) + (lane & 3)))

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void split_product(
    global const float* x, ulong x_offset, global const uchar* w, ulong w_offset, global const float* bias,
    ulong bias_offset, global float* y, ulong y_offset, int has_bias, int pixels, int channels_in, int channels_out,
    const Images sizes, int steps, int steps_part, int tiles_m, int tiles_n,
    long table_at, long planes_at, long part_stride EPILOGUE_PARAMETERS) {
    local uchar tiles[2 * STAGE] __attribute__((aligned(1024)));
    local uint largest[4 * BN] __attribute__((aligned(8)));
    local float unscale[2 * BN] __attribute__((aligned(8)));
    local int places[BN];
    const uint tiles_at = (uint)tiles;
    const int id = get_local_id(0), warp = id >> 5, lane = id & 31, warpgroup = id >> 7;
    const int tile_m = (int)get_group_id(0) % tiles_m, m0 = tile_m * BM;
    const int n0 = (int)get_group_id(0) / tiles_m % tiles_n * BN;
    const int part = (int)get_group_id(0) / tiles_m / tiles_n;
    const int first = part * steps_part, last = min(steps, first + steps_part);
    const Images images = sizes;  // in registers
    const int plane = PLANE, out_plane = images.out_h * images.out_w, y_plane = images.y_h * images.y_w;
    x += x_offset;
    w += w_offset;

    // This work-item's two pixels, of 64 that its warp reads for every fourth k: their places in the image of tap
    // (0, 0) of channel 0, and which taps are inside.
    const int block = warp >> 2, k0 = warp & 3, column = block * 64 + lane * 2;
    int base[2];
    uint mask[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int local_pixel = block * 64 + PIXEL(lane) + 32 * i, pixel = n0 + local_pixel;
        const int image = pixel / out_plane, inside = pixel - image * out_plane;
        const int row = inside / images.out_w, top = row * images.stride_h - images.pad_h;
        const int left = (inside - row * images.out_w) * images.stride_w - images.pad_w;
        base[i] = image * channels_in * plane + top * images.x_w + left;
        mask[i] = taps_inside(images, top, left, KERNEL_H, KERNEL_W);
        if (pixel >= pixels) mask[i] = 0;
        if (k0 == 0)
            places[local_pixel] = pixel < pixels ? place_in_y(images, image * channels_out * y_plane, inside) : -1;
    }
#if BLOCKED
    x += (long)k0 * plane;
#else
    global const int2* table = (global const int2*)(w + table_at) + k0;
#endif
    global const uchar* weights = w + planes_at + (long)tile_m * steps * (PLANES * A_PLANE) + id * 16;
    float next[32], sum[SUMS], product[SUMS];

#pragma unroll
    for (int i = 0; i < SUMS; ++i) sum[i] = product[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (first < last) {
        COPY_WEIGHTS(first, 0)
        READ(first)
        KEEP(0)
        if (first + 1 < last) READ(first + 1)
        COPY_WAIT_BUT(0)
        UNIT_FENCE
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    int stage = 0;
    for (int t = first; t < last; ++t) {
        const uint at = tiles_at + stage * STAGE;
        UNIT_EARLY(MULTIPLY_STEP)
        if (t + 1 < last) {
            COPY_WEIGHTS(t + 1, 1 - stage)
            KEEP(1 - stage)
            if (t + 2 < last) READ(t + 2)
            COPY_WAIT_BUT(0)
            UNIT_FENCE
        }
        UNIT_LATE(MULTIPLY_STEP)
        UNIT_WAIT(product)
        local const float* factors = unscale + stage * BN + (WM == 2 ? 0 : warpgroup * 64) + (lane & 3) * 2;
#pragma unroll
        for (int i = 0; i < SUMS / 4; ++i) {
            const float2 f = *(local const float2*)(factors + 8 * i);
            sum[4 * i] = fma(product[4 * i], f.x, sum[4 * i]);
            sum[4 * i + 1] = fma(product[4 * i + 1], f.y, sum[4 * i + 1]);
            sum[4 * i + 2] = fma(product[4 * i + 2], f.x, sum[4 * i + 2]);
            sum[4 * i + 3] = fma(product[4 * i + 3], f.y, sum[4 * i + 3]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        stage = 1 - stage;
    }

    // Sums 32 b + 4 i + e of a work-item are of block b of 64 columns (WM 1: its warpgroup's), i of 8, e of the pair.
#include "matrix/finish_plain.clh"
}
