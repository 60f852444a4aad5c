// SPDX-License-Identifier: MIT
// The product of images in halves or bfloat16, channels last, with packed weights, on tensor cores: conv2d.wgmma_half, one
// phase of conv2d_backward_data.wgmma_half, and, with lines of a matrix as pixels (DIRECT), inner_product.wgmma_half. On the
// smaller unit they are called mma_half.
//
//              BN output channels
//            +-------------------+
//   128 * MG |   warpgroup 0     |   rows     output pixels of all images
//     pixels |-------------------|   columns  output channels
//            |   warpgroup 1     |   K        blocks of 64 input channels, within them taps; 64 channels of one tap per step
//            +-------------------+
//
// Define               meaning                                                            example
// KIND, STAGES, NEAR   see copies16.clh                                                   1, 4, 0
// MG                   rows of the tile in 128                                            1
// BN                   columns of the tile: 64, 128 or 256                                128
// Y_KIND               type of y: 0 float, 1 half, 2 bfloat16                             1
// KERNEL_H, KERNEL_W   taps of the kernel                                                 3, 3
// DIRECT               1 if pixel p of y reads pixel p of x and nothing else              0
// CHANNEL_TAIL         1 if input channels do not fill blocks of 64                       0
// Y_FOURS              1 if output channels are a multiple of four: EPILOGUE takes a float4   1
// MMA                  see unit.clh                                                       0
//
// Work-group: one tile, for one part of K (steps_part steps). Operands come to local memory by asynchronous copies of 16
// bytes, and nothing else touches them. Weights are packed by stored16_pack.cl. A work-item copies one 16-byte chunk of 4 * MG
// rows and BN / 32 chunks of weights, and holds MG * BN / 2 sums. At the end sums pass through local memory in float, so
// that y is written, and residuals are read, in rows of channels.
// Local memory: STAGES * (BM + BN) * 128 bytes, or 4 * BM * (BN + 8) if that is more; and 12 * BM bytes.
#include "matrix/round16.clh"
#include "matrix/copies16.clh"
#include "matrix/images.clh"

#define BM (128 * MG)
#define A_BYTES (BM * 128)
#define B_BYTES (BN * 128)
#define STAGE (A_BYTES + B_BYTES)
#define TAPS (KERNEL_H * KERNEL_W)
#define WIDTH BN
#include "matrix/width.clh"
#define Y_TYPE JOIN(STORED_, Y_KIND)
// A row of sums in local memory, in floats: neighbouring rows in different banks.
#define ROW (BN + 8)
#if STAGES * STAGE > BM * ROW * 4
#define LOCAL_BYTES (STAGES * STAGE)
#else
#define LOCAL_BYTES (BM * ROW * 4)
#endif

// Statements of the kernel, on its locals.

#define COPY(t, stage)                                                                                             \
    {                                                                                                              \
        const int step_ = t, block_ = step_ / TAPS, tap_ = step_ - block_ * TAPS;                                  \
        const int ky_ = tap_ / KERNEL_W, kx_ = tap_ - ky_ * KERNEL_W;                                              \
        const int far_ = (ky_ * images.dilate_h * images.x_w + kx_ * images.dilate_w) * channels_in + block_ * 64; \
        const uint at_ = (stage)*STAGE;                                                                            \
        const int live_ = !CHANNEL_TAIL || block_ * 64 + chunk * 8 < channels_in;                                  \
        _Pragma("unroll") for (int i_ = 0; i_ < BN / 32; ++i_)                                                     \
            if (first_block + i_ / 2 < row_blocks)                                                                 \
                COPY_16(tiles_at + at_ + A_BYTES + id * 16 + i_ * 4096,                                            \
                          weights + ((long)(i_ / 2) * steps + step_) * 8192 + i_ % 2 * 4096)                       \
        _Pragma("unroll") for (int i_ = 0; i_ < 4 * MG; ++i_) {                                                    \
            const uint size_ = live_ ? (mask[i_] >> ky_ & mask[i_] >> (16 + kx_) & 1) << 4 : 0;                    \
            COPY_X(to + at_ + i_ * 4096, x + (from[i_] + far_), size_)                                             \
        }                                                                                                          \
    }

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void stored16_product(
    global const ushort* x, ulong x_offset, global const uchar* w, ulong w_offset, global const float* bias,
    ulong bias_offset, global Y_TYPE* y, ulong y_offset, int has_bias, int pixels, int channels_in, int channels_out,
    const Images sizes, int steps, int steps_part,
    int tiles_m, int tiles_n, int row_blocks, long blocks_at, long part_stride EPILOGUE_PARAMETERS) {
    local uchar tiles[LOCAL_BYTES] __attribute__((aligned(1024)));
    // Of each row: the place in x of tap (0, 0) in pixels; which taps are inside, rows of them in the lower bits and
    // columns in the upper; the place in y in pixels, or -1.
    local int bases[BM];
    local int places[BM];
    local uint masks[BM];
    const Images images = sizes;  // in registers
    const uint tiles_at = (uint)tiles;
    const int id = get_local_id(0), warp = id >> 5, lane = id & 31, warpgroup = id >> 7;
    const int n0 = (int)get_group_id(0) % tiles_n * BN;
    const int m0 = (int)get_group_id(0) / tiles_n % tiles_m * BM;
    const int part = (int)get_group_id(0) / tiles_n / tiles_m;
    const int first = part * steps_part, last = min(steps, first + steps_part);
    x += x_offset;
    w += w_offset;

    if (id < BM) {
        const int pixel = m0 + id;
#if DIRECT
        bases[id] = pixel;
        masks[id] = pixel < pixels ? 0x10001 : 0;
        places[id] = pixel < pixels ? pixel : -1;
#else
        const int out_plane = images.out_h * images.out_w, image = pixel / out_plane, in_plane = pixel - image * out_plane;
        uint mask;
        bases[id] = first_tap(images, pixel, KERNEL_H, KERNEL_W, &mask);
        masks[id] = pixel < pixels ? mask : 0;
        places[id] = pixel < pixels ? place_in_y(images, image * images.y_h * images.y_w, in_plane) : -1;
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    // A work-item copies one 16-byte chunk of 4 * MG rows, and BN / 32 chunks of weights.
    const int chunk = id & 7;
    int from[4 * MG];
    uint mask[4 * MG];
#pragma unroll
    for (int i = 0; i < 4 * MG; ++i) {
        from[i] = bases[(id >> 3) + 32 * i] * channels_in + chunk * 8;
        mask[i] = masks[(id >> 3) + 32 * i];
    }
    const uint to = tiles_at + unit_at(id >> 3, chunk);
    const int first_block = n0 / 64;
    global const uchar* weights = w + blocks_at + (long)first_block * steps * 8192 + id * 16;

#define A_TILE(at) UNIT_ROWS((at) + warpgroup * (MG * 8192))
#define B_TILE(at) UNIT_ROWS((at) + A_BYTES)
#define A_NEXT UNIT_STEP(32)
#define B_NEXT UNIT_STEP(32)
#define A_WAY 0
#define B_WAY 0
#define PAIRS_OF_64 (MG == 2)
#include "matrix/pipeline16.clh"

    y += y_offset + (ulong)part * part_stride;
    bias += bias_offset;
    // Nobody reads the tiles any more.
    local float* rows = (local float*)tiles;
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int i = 0; i < MG * SUMS / 2; ++i) {
        const int row = (warpgroup * MG + i / (SUMS / 2)) * 64 + (warp & 3) * 16 + (lane >> 2) + (i & 1) * 8;
        const int column = i % (SUMS / 2) / 2 * 8 + (lane & 3) * 2;
        *(local float2*)(rows + row * ROW + column) = (float2)(sum[2 * i], sum[2 * i + 1]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#define ITEMS 256
#define PLACE(row) places[row]
#include "matrix/finish_last.clh"
}
