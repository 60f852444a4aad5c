// SPDX-License-Identifier: MIT
// conv2d.wgmma_half_first (mma_half_first): the first convolution of a network, from plain images of few channels to halves or
// bfloat16 with channels last, on tensor cores.
//
//            BN output channels
//          +-------------------+
//      128 |   warpgroup 0     |   rows     output pixels of all images; rows 2 i and 2 i + 1 of each 64 are pixels i and
//   pixels |-------------------|            i + 32, so that a warp reads 32 contiguous pixels
//          |   warpgroup 1     |   columns  output channels
//          +-------------------+   K        input channels, within them taps; all of it is in local memory at once
//
// Define                 meaning                                                          example
// KIND                   type of the factors: 1 half, 2 bfloat16                          1
// X_KIND, Y_KIND         types of x and y: 0 float, 1 half, 2 bfloat16                    0, 1
// BN                     columns of the tile: 64 or 128                                   64
// STEPS                  steps of 64 of K                                                 3
// CHANNELS               input channels                                                   3
// KERNEL_H, KERNEL_W     taps of the kernel                                               7, 7
// X_H, X_W               size of x                                                        224, 224
// OUT_H, OUT_W           size of y                                                        112, 112
// STRIDE_H, STRIDE_W     strides                                                          2, 2
// Y_FOURS                1 if output channels are a multiple of four: EPILOGUE takes a float4   1
// MMA                    see unit.clh                                                     0
//
// Work-group: one tile, all of K. While it reads patches, other work-groups of the compute unit multiply and store. Weights
// are packed by stored16_pack.cl with block 1.
// Local memory: STEPS * (16 KiB + BN * 128 bytes), or 512 * (BN + 8) bytes if that is more; and 512 * STEPS bytes.
#define STAGES 2
#define NEAR 0
#include "matrix/round16.clh"
#include "matrix/copies16.clh"

#define BM 128
#define DEPTH (CHANNELS * KERNEL_H * KERNEL_W)
#define A_BYTES (STEPS * 16384)
#define B_BYTES (BN * 128)
#define ROW (BN + 8)
#if A_BYTES + STEPS * B_BYTES > BM * ROW * 4
#define LOCAL_BYTES (A_BYTES + STEPS * B_BYTES)
#else
#define LOCAL_BYTES (BM * ROW * 4)
#endif
#define WIDTH BN
#include "matrix/width.clh"
#define X_TYPE JOIN(STORED_, X_KIND)
#define Y_TYPE JOIN(STORED_, Y_KIND)
#define PACK JOIN(PACK_, KIND)
// Elements of x, in pairs, as halves or bfloat16.
#if X_KIND == 0
#define PAIR PACK
#else
#define PAIR(a, b) ((uint)(a) | (uint)(b) << 16)
#endif

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void stored16_first(
    global const X_TYPE* x, ulong x_offset, global const uchar* w, ulong w_offset, global const float* bias,
    ulong bias_offset, global Y_TYPE* y, ulong y_offset, int has_bias, int pixels, int channels_out, int pad_h,
    int pad_w, int dilate_h, int dilate_w, int tiles_n, int row_blocks, long blocks_at EPILOGUE_PARAMETERS) {
    local uchar tiles[LOCAL_BYTES] __attribute__((aligned(1024)));
    // Of each k: distance in the image, and bits of a pixel's mask that must be set.
    local int far[STEPS * 64];
    local uint bits[STEPS * 64];
    const uint tiles_at = (uint)tiles;
    const int id = get_local_id(0), warp = id >> 5, lane = id & 31, warpgroup = id >> 7;
    const int n0 = (int)get_group_id(0) % tiles_n * BN, m0 = (int)get_group_id(0) / tiles_n * BM;
    x += x_offset;
    w += w_offset;

    global const uchar* weights = w + blocks_at + (long)(n0 / 64) * STEPS * 8192 + id * 16;
#pragma unroll
    for (int t = 0; t < STEPS; ++t) {
#pragma unroll
        for (int i = 0; i < BN / 32; ++i)
            if (n0 / 64 + i / 2 < row_blocks)
                COPY_16(tiles_at + A_BYTES + t * B_BYTES + id * 16 + i * 4096,
                          weights + ((long)(i / 2) * STEPS + t) * 8192 + i % 2 * 4096)
    }
    COPY_COMMIT
    for (int k = id; k < STEPS * 64; k += 256) {
        const int c = k / (KERNEL_H * KERNEL_W), tap = k - c * (KERNEL_H * KERNEL_W);
        const int ky = tap / KERNEL_W, kx = tap - ky * KERNEL_W;
        far[k] = (c * X_H + ky * dilate_h) * X_W + kx * dilate_w;
        bits[k] = k < DEPTH ? 1u << ky | 0x10000u << kx : 0;
    }

    // A warp reads two times 32 pixels of its half of the rows for every fourth k.
    int from[2];
    uint mask[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int pixel = m0 + warpgroup * 64 + lane + 32 * i, image = pixel / (OUT_H * OUT_W);
        const int inside = pixel - image * (OUT_H * OUT_W), row = inside / OUT_W;
        const int top = row * STRIDE_H - pad_h, left = (inside - row * OUT_W) * STRIDE_W - pad_w;
        from[i] = (image * (CHANNELS * X_H) + top) * X_W + left;
        mask[i] = 0;
        for (int k = 0; k < KERNEL_H; ++k) mask[i] |= (uint)((uint)(top + k * dilate_h) < X_H) << k;
        for (int k = 0; k < KERNEL_W; ++k) mask[i] |= (uint)((uint)(left + k * dilate_w) < X_W) << (16 + k);
        if (pixel >= pixels) mask[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    {
        local uchar* to = tiles + warpgroup * 8192 + (lane & 3) * 4;
#pragma unroll 8
        for (int i = 0; i < STEPS * 16; ++i) {
            const int k = (warp & 3) + 4 * i, t = k >> 6, e = far[k];
            const uint wanted = bits[k];
            X_TYPE v0 = 0, v1 = 0;
            if (wanted != 0 && (mask[0] & wanted) == wanted) v0 = x[from[0] + e];
            if (wanted != 0 && (mask[1] & wanted) == wanted) v1 = x[from[1] + e];
            *(local uint*)(to + t * 16384 + unit_at(k & 63, lane >> 2)) = PAIR(v0, v1);
        }
    }
    COPY_WAIT_BUT(0)
    UNIT_FENCE
    barrier(CLK_LOCAL_MEM_FENCE);

    float sum[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; ++i) sum[i] = 0;
    UNIT_BEGIN
#pragma unroll
    for (int t = 0; t < STEPS; ++t) {
        const ulong a = UNIT_COLUMNS(tiles_at + t * 16384 + warpgroup * 8192);
        const ulong b = UNIT_ROWS(tiles_at + A_BYTES + t * B_BYTES);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (t * 64 + k * 16 < DEPTH) MULTIPLY(sum, a + UNIT_STEP(2048) * k, b + UNIT_STEP(32) * k, 1, 0);
    }
    UNIT_COMMIT
    WAIT(sum)

    y += y_offset;
    bias += bias_offset;
    // Nobody reads the tiles any more.
    local float* rows = (local float*)tiles;
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int i = 0; i < SUMS / 2; ++i) {
        const int row = (warp & 3) * 16 + (lane >> 2) + (i & 1) * 8;
        const int column = i / 2 * 8 + (lane & 3) * 2;
        *(local float2*)(rows + (warpgroup * 64 + (row >> 1) + (row & 1) * 32) * ROW + column) =
            (float2)(sum[2 * i], sum[2 * i + 1]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#define ITEMS 256
#define PLACE(row) (m0 + (row) < pixels ? m0 + (row) : -1)
#include "matrix/finish_last.clh"
}
