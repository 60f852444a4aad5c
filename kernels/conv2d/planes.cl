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
#include "matrix/images.clh"

#define FACTORS BN
#define TAPS (KERNEL_H * KERNEL_W)
INLINE int column_pixel(int c) {
    return (c >> 4) * 16 + (c >> 1 & 3) * 4 + (c >> 3 & 1) * 2 + (c & 1);
}

#if NARROW
#define PIXEL_BYTES 8
#define CHUNK_AT(chunk) ((chunk) / (8 / NARROW) * images.x_w * 8 + (chunk) % (8 / NARROW) * 16)
#define COPY_PIXELS COPY_16_NEAR_OF
#define FACTOR_BYTES 0
#else
#define PIXEL_BYTES 128
#define CHUNK_AT(chunk) ((chunk)*16)
#define COPY_PIXELS COPY_16_OF
#define FACTOR_BYTES 4
#endif

// Statements of the kernel, on its locals.

#define COPY(t, stage)                                                                                      \
    {                                                                                                       \
        const int step_ = t, block = step_ / TAPS, tap = step_ - block * TAPS;                              \
        const int ky = tap / KERNEL_W, kx = tap - ky * KERNEL_W;                                            \
        const long far = (long)block * x_pixels + ky * images.dilate_h * images.x_w + kx * images.dilate_w; \
        const uint tile_at = (stage)*STAGE, factor_at = unscale_at + ((stage)*BN + id) * 4;                 \
        _Pragma("unroll") for (int i_ = 0; i_ < PLANES * A_PLANE / 4096; ++i_)                              \
            COPY_16(tiles_at + tile_at + id * 16 + i_ * 4096,                                               \
                    weights + (long)step_ * (PLANES * A_PLANE) + i_ * 4096)                                 \
        _Pragma("unroll") for (int i_ = 0; i_ < 4; ++i_) {                                                  \
            const uint size = (mask[i_] >> ky & mask[i_] >> (16 + kx) & 1) << 4;                            \
            COPY_PIXELS(to + tile_at + i_ * 4096, from[i_] + far * PIXEL_BYTES, size)                       \
            if (PLANES == 2)                                                                                \
                COPY_PIXELS(to + tile_at + B_PLANE + i_ * 4096, from[i_] + lower + far * PIXEL_BYTES, size) \
        }                                                                                                   \
        if (id < BN) {                                                                                      \
            const uint size = (factor_mask >> ky & factor_mask >> (16 + kx) & 1) << 2;                      \
            COPY_4_OF(factor_at, factors + far * FACTOR_BYTES, size)                                        \
        }                                                                                                   \
    }

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void planes_product(
    global const uchar* x, ulong x_offset, global const uchar* w, ulong w_offset, global const float* bias,
    ulong bias_offset, global float* y, ulong y_offset, int has_bias, int pixels, int x_pixels, int channels_out,
    const Images sizes, int blocks, int steps, int steps_part, int tiles_m, int tiles_n, int tile0, long planes_at,
    long part_stride EPILOGUE_PARAMETERS) {
    local uchar tiles[STAGES * STAGE] __attribute__((aligned(1024)));
    local float unscale[STAGES * BN] __attribute__((aligned(16)));
    local int places[BN];
    const uint tiles_at = (uint)tiles, unscale_at = (uint)unscale;
    const int id = get_local_id(0), warp = id >> 5, lane = id & 31, warpgroup = id >> 7;
    const int tile_m = (int)get_group_id(0) % tiles_m, m0 = tile_m * BM;
    const int n0 = (tile0 + (int)get_group_id(0) / tiles_m % tiles_n) * BN;
    const int part = (int)get_group_id(0) / tiles_m / tiles_n;
    const int first = part * steps_part, last = min(steps, first + steps_part);
    const Images images = sizes;  // in registers
    const int out_plane = images.out_h * images.out_w, y_plane = images.y_h * images.y_w;
    x += x_offset;
    w += w_offset;

    // A work-item copies one 16-byte chunk of four columns, and the factor of a fifth.
    const int chunk = id & 7, row = id >> 3;
    global const uchar* from[4];
    uint mask[4], factor_mask;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int pixel = n0 + column_pixel(row + 32 * i);
        const int base = first_tap(images, pixel, KERNEL_H, KERNEL_W, &mask[i]);
        if (pixel >= pixels) mask[i] = 0;
        from[i] = x + (long)base * PIXEL_BYTES + CHUNK_AT(chunk);
    }
    const int factor_pixel = n0 + column_pixel(id & 127);
    int factor_base = first_tap(images, factor_pixel, KERNEL_H, KERNEL_W, &factor_mask);
    if (factor_pixel >= pixels) factor_mask = 0;
#if NARROW
    factor_base = min(factor_pixel, pixels - 1) / out_plane;
#endif
    global const uchar* factors = x + (long)blocks * x_pixels * (PIXEL_BYTES * PLANES) + (long)factor_base * 4;
    if (id < BN) {
        const int pixel = n0 + id, image = pixel / out_plane, in_plane = pixel - image * out_plane;
        places[id] = pixel < pixels ? place_in_y(images, image * channels_out * y_plane, in_plane) : -1;
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
