// SPDX-License-Identifier: MIT
// conv2d.wgmma_planes, conv2d_backward_data.wgmma_planes and conv2d.wgmma_narrow (mma_...): a convolution, or one phase of a
// data gradient, in float on tensor cores, over images that were split into halves beforehand (planes_pack.cl, narrow_pack.cl).
//
//             128 output pixels
//           +-------------------+
//   64 * WM |                   |   rows     output channels
//           |                   |   columns  output pixels of all images in the order column_pixel, which leaves quads of
//           +-------------------+            contiguous pixels to a work-item; `tiles_n` tiles from `tile0` on
//                                   K        blocks of 64 input channels, within them taps; one tap per step
//   WM 2: warpgroups one above the other; WM 1: beside each other
//
// Define               meaning                                                            example
// WM                   rows of the tile in 64                                             2
// PRODUCTS             3: exact float; 1: tf32, of upper halves alone (halves.clh)        3
// STAGES               steps in local memory: one is multiplied, the others on their way  3
// KERNEL_H, KERNEL_W   taps of the kernel                                                 3, 3
// Y_QUADS              1 if y is written without gaps and its planes are multiples of four pixels   1
// NARROW               0, or rows of the kernel per step for images of at most four channels        0
// MMA                  see unit.clh                                                       0
//
// Work-group: one tile, for one part of K (steps_part steps), by the pipeline of planes_pipeline.clh: a step comes to local
// memory by asynchronous copies of 16 bytes, and nothing else touches it. Weights are packed by split_pack.cl.
//
// NARROW: images have four channels per pixel, borders of zeros in memory and one power of two per image. A step is NARROW
// rows of the kernel of 16 / NARROW pixels each, which lie in memory as K wants them; windows of neighbours overlap. To the
// kernel that is a column of KERNEL_H steps.
// Local memory: STAGES * (BM + 128) * 256 bytes (half of that with PRODUCTS 1), and 512 * (STAGES + 1) bytes.
#include "matrix/planes.clh"

#define FACTORS BN
#define TAPS (KERNEL_H * KERNEL_W)
INLINE int column_pixel(int c) {
    return (c >> 4) * 16 + (c >> 1 & 3) * 4 + (c >> 3 & 1) * 2 + (c & 1);
}

#if NARROW
#define PIXEL_BYTES 8
#define CHUNK_AT(chunk) ((chunk) / (8 / NARROW) * x_w * 8 + (chunk) % (8 / NARROW) * 16)
#define COPY_PIXELS COPY_16_NEAR_OF
#define FACTOR_BYTES 0
#else
#define PIXEL_BYTES 128
#define CHUNK_AT(chunk) ((chunk)*16)
#define COPY_PIXELS COPY_16_OF
#define FACTOR_BYTES 4
#endif

// Statements of the kernel, on its locals.

// The place of tap (0, 0) of an output pixel among all images' pixels, and which taps are inside: rows of them in
// the lower bits, columns in the upper.
#define LOCATE(column, base, mask)                                                                              \
    {                                                                                                           \
        const int pixel = n0 + column_pixel(column), image = pixel / out_plane;                                 \
        const int inside = pixel - image * out_plane, row = inside / out_w;                                     \
        const int top = row * stride_h - pad_h, left = (inside - row * out_w) * stride_w - pad_w;               \
        base = (image * x_h + top) * x_w + left;                                                                \
        mask = 0;                                                                                               \
        for (int k = 0; k < KERNEL_H; ++k) mask |= ((uint)(top + k * dilate_h) < (uint)x_h) << k;               \
        for (int k = 0; k < KERNEL_W; ++k) mask |= ((uint)(left + k * dilate_w) < (uint)x_w) << (16 + k);       \
        if (pixel >= pixels) mask = 0;                                                                          \
    }
#define COPY(t, stage)                                                                                            \
    {                                                                                                             \
        const int step_ = t, block = step_ / TAPS, tap = step_ - block * TAPS;                                    \
        const int ky = tap / KERNEL_W, kx = tap - ky * KERNEL_W;                                                  \
        const long far = (long)block * x_pixels + ky * dilate_h * x_w + kx * dilate_w;                            \
        const uint tile_at = (stage)*STAGE, factor_at = unscale_at + ((stage)*BN + id) * 4;                       \
        _Pragma("unroll") for (int i_ = 0; i_ < PLANES * A_PLANE / 4096; ++i_)                                    \
            COPY_16(tiles_at + tile_at + id * 16 + i_ * 4096,                                                     \
                    weights + (long)step_ * (PLANES * A_PLANE) + i_ * 4096)                                       \
        _Pragma("unroll") for (int i_ = 0; i_ < 4; ++i_) {                                                        \
            const uint size = (mask[i_] >> ky & mask[i_] >> (16 + kx) & 1) << 4;                                  \
            COPY_PIXELS(to + tile_at + i_ * 4096, from[i_] + far * PIXEL_BYTES, size)                             \
            if (PLANES == 2)                                                                                      \
                COPY_PIXELS(to + tile_at + B_PLANE + i_ * 4096, from[i_] + lower + far * PIXEL_BYTES, size)       \
        }                                                                                                         \
        if (id < BN) {                                                                                            \
            const uint size = (factor_mask >> ky & factor_mask >> (16 + kx) & 1) << 2;                            \
            COPY_4_OF(factor_at, factors + far * FACTOR_BYTES, size)                                              \
        }                                                                                                         \
    }

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void planes_product(
    global const uchar* x, ulong x_offset, global const uchar* w, ulong w_offset, global const float* bias,
    ulong bias_offset, global float* y, ulong y_offset, int has_bias, int pixels, int x_pixels, int channels_out,
    int x_h, int x_w, int y_h, int y_w, int out_h, int out_w, int row0, int column0, int row_step, int column_step,
    int stride_h, int stride_w, int pad_h, int pad_w, int dilate_h, int dilate_w, int blocks, int steps,
    int steps_part, int tiles_m, int tiles_n, int tile0, long planes_at, long part_stride EPILOGUE_PARAMETERS) {
    local uchar tiles[STAGES * STAGE] __attribute__((aligned(1024)));
    local float unscale[STAGES * BN] __attribute__((aligned(16)));
    local int places[BN];
    const uint tiles_at = (uint)tiles, unscale_at = (uint)unscale;
    const int id = get_local_id(0), warp = id >> 5, lane = id & 31, warpgroup = id >> 7;
    const int tile_m = (int)get_group_id(0) % tiles_m, m0 = tile_m * BM;
    const int n0 = (tile0 + (int)get_group_id(0) / tiles_m % tiles_n) * BN;
    const int part = (int)get_group_id(0) / tiles_m / tiles_n;
    const int first = part * steps_part, last = min(steps, first + steps_part);
    const int out_plane = out_h * out_w, y_plane = y_h * y_w;
    x += x_offset;
    w += w_offset;

    // A work-item copies one 16-byte chunk of four columns, and the factor of a fifth.
    const int chunk = id & 7, row = id >> 3;
    global const uchar* from[4];
    uint mask[4], factor_mask;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        int base;
        LOCATE(row + 32 * i, base, mask[i])
        from[i] = x + (long)base * PIXEL_BYTES + CHUNK_AT(chunk);
    }
    int factor_base;
    LOCATE(id & 127, factor_base, factor_mask)
#if NARROW
    factor_base = min(n0 + column_pixel(id & 127), pixels - 1) / out_plane;
#endif
    global const uchar* factors = x + (long)blocks * x_pixels * (PIXEL_BYTES * PLANES) + (long)factor_base * 4;
    if (id < BN) {
        const int pixel = n0 + id, image = pixel / out_plane, inside = pixel - image * out_plane, r = inside / out_w;
        places[id] = pixel < pixels ? image * channels_out * y_plane + (row0 + r * row_step) * y_w + column0 +
                                          (inside - r * out_w) * column_step
                                    : -1;
    }
    const uint to = tiles_at + PLANES * A_PLANE + unit_at(row, chunk);
    const long lower = (long)blocks * x_pixels * PIXEL_BYTES;
    global const uchar* weights = w + planes_at + (long)tile_m * steps * (PLANES * A_PLANE) + id * 16;

#include "matrix/planes_pipeline.clh"
    // `places`, where no step was.
    barrier(CLK_LOCAL_MEM_FENCE);

#define PLACE_AT(q, j) ((WM == 2 ? 0 : warpgroup * 64) + (q)*16 + (lane & 3) * 4 + (j))
#include "matrix/finish_plain.clh"
}
