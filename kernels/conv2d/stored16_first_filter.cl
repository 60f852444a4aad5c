// SPDX-License-Identifier: MIT
// conv2d_backward_filter.wgmma_half_first (mma_half_first): dweight of the first convolution of a network, from plain images of
// few channels and an output gradient in halves or bfloat16 with channels last, on tensor cores.
//
//             BN (input channel, tap)
//           +-------------------+
//   64 * WM |                   |   rows     output channels
//           |                   |   columns  (input channel, tap), taps innermost: all there are
//           +-------------------+   K        output pixels of all images, 64 per step; rows 2 i and 2 i + 1 of a step are
//                                            its pixels i and i + 32, so that a warp reads 32 contiguous pixels
//   WM 2: warpgroups one above the other; WM 1: beside each other
//
// Define                 meaning                                                          example
// KIND                   type of dy and of the factors: 1 half, 2 bfloat16                1
// X_KIND                 type of x: 0 float, 1 half, 2 bfloat16                           0
// WM                     rows of the tile in 64                                           1
// BN                     columns of the tile                                              256
// CHANNELS               input channels                                                   3
// KERNEL_H, KERNEL_W     taps of the kernel                                               7, 7
// X_H, X_W               size of x                                                        224, 224
// OUT_H, OUT_W           size of dy                                                       112, 112
// STRIDE_H, STRIDE_W     strides                                                          2, 2
// MMA                    see unit.clh                                                     0
//
// Work-group: one row of tiles, for one part of K (steps_part steps). dy comes to local memory by asynchronous copies and is
// read transposed; pixels of x are gathered while the step before is multiplied. Sums go to `parts` as [part][output
// channel][column] (stored16_filter_sum.cl). Local memory: 2 * (BM + BN) * 128 bytes, and 8 * BN.
#define STAGES 2
#define NEAR 0
#include "matrix/round16.clh"
#include "matrix/copies16.clh"

#define BM (64 * WM)
#define A_BYTES (BM * 128)
#define STAGE ((BM + BN) * 128)
#define COLUMNS (CHANNELS * KERNEL_H * KERNEL_W)
#define WIDTH (BN * WM / 2)
#include "matrix/width.clh"
#define X_TYPE JOIN(STORED_, X_KIND)
#define PACK JOIN(PACK_, KIND)
#if X_KIND == 0
#define PAIR PACK
#else
#define PAIR(a, b) ((uint)(a) | (uint)(b) << 16)
#endif

// Statements of the kernel, on its locals.

// dy of step t: a work-item copies one chunk of two rows of every block.
#define COPY_A(t, stage)                                                                    \
    _Pragma("unroll") for (int i_ = 0; i_ < 2; ++i_) {                                      \
        const int row_ = (id >> 3) + 32 * i_, pixel_ = (t)*64 + (row_ >> 1) + (row_ & 1) * 32; \
        _Pragma("unroll") for (int b_ = 0; b_ < WM; ++b_) {                                 \
            const int m_ = m0 + b_ * 64 + chunk * 8;                                        \
            const uint size_ = pixel_ < pixels && m_ < channels_out ? 16 : 0;               \
            COPY_X(to + (stage)*STAGE + i_ * 4096 + b_ * 8192, dy + (pixel_ * channels_out + m_), size_) \
        }                                                                                   \
    }
// Pixels of x: a warp gathers every eighth column.
#define GATHER(t, stage)                                                                                  \
    {                                                                                                     \
        int from_[2];                                                                                     \
        uint mask_[2];                                                                                    \
        _Pragma("unroll") for (int i_ = 0; i_ < 2; ++i_) {                                                \
            const int pixel_ = (t)*64 + lane + 32 * i_, image_ = pixel_ / (OUT_H * OUT_W);                \
            const int inside_ = pixel_ - image_ * (OUT_H * OUT_W), row_ = inside_ / OUT_W;                \
            const int top_ = row_ * STRIDE_H - pad_h, left_ = (inside_ - row_ * OUT_W) * STRIDE_W - pad_w; \
            from_[i_] = (image_ * (CHANNELS * X_H) + top_) * X_W + left_;                                 \
            mask_[i_] = 0;                                                                                \
            _Pragma("unroll") for (int k_ = 0; k_ < KERNEL_H; ++k_)                                       \
                mask_[i_] |= (uint)((uint)(top_ + k_ * dilate_h) < X_H) << k_;                            \
            _Pragma("unroll") for (int k_ = 0; k_ < KERNEL_W; ++k_)                                       \
                mask_[i_] |= (uint)((uint)(left_ + k_ * dilate_w) < X_W) << (16 + k_);                    \
            if (pixel_ >= pixels) mask_[i_] = 0;                                                          \
        }                                                                                                 \
        local uchar* line_ = tiles + (stage)*STAGE + A_BYTES + (lane & 3) * 4;                            \
        _Pragma("unroll 8") for (int i_ = 0; i_ < (COLUMNS + 7) / 8; ++i_) {                              \
            const int k_ = warp + 8 * i_, e_ = far[k_];                                                   \
            const uint wanted_ = bits[k_];                                                                \
            X_TYPE v0_ = 0, v1_ = 0;                                                                      \
            if (wanted_ != 0 && (mask_[0] & wanted_) == wanted_) v0_ = x[from_[0] + e_];                  \
            if (wanted_ != 0 && (mask_[1] & wanted_) == wanted_) v1_ = x[from_[1] + e_];                  \
            *(local uint*)(line_ + unit_at(k_, lane >> 2)) = PAIR(v0_, v1_);                             \
        }                                                                                                 \
    }
#define PREPARE(t, stage)                      \
    {                                          \
        COPY_A(t, stage)                       \
        COPY_COMMIT                       \
        GATHER(t, stage)                       \
        COPY_WAIT_BUT(0)                     \
        UNIT_FENCE                            \
    }
#define MULTIPLY_STEP                                                                                              \
    UNIT_BEGIN                                                                                                     \
    _Pragma("unroll") for (int k = 0; k < 4; ++k) MULTIPLY(sum, a + UNIT_STEP(2048) * k, b + UNIT_STEP(32) * k, 1, 0); \
    UNIT_COMMIT

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void stored16_first_filter(
    global const X_TYPE* x, ulong x_offset, global const ushort* dy, ulong dy_offset, global float* parts,
    ulong parts_offset, int pixels, int channels_out, int pad_h, int pad_w, int dilate_h, int dilate_w, int steps,
    int steps_part, int tiles_m, long part_stride) {
    local uchar tiles[2 * STAGE] __attribute__((aligned(1024)));
    // Of each column: distance in the image, and bits of a pixel's mask that must be set.
    local int far[BN];
    local uint bits[BN];
    const uint tiles_at = (uint)tiles;
    const int id = get_local_id(0), warp = id >> 5, lane = id & 31, warpgroup = id >> 7;
    const int m0 = (int)get_group_id(0) % tiles_m * BM, part = (int)get_group_id(0) / tiles_m;
    const int first = part * steps_part, last = min(steps, first + steps_part);
    x += x_offset;
    dy += dy_offset;
    for (int k = id; k < BN; k += 256) {
        const int c = k / (KERNEL_H * KERNEL_W), tap = k - c * (KERNEL_H * KERNEL_W);
        const int ky = tap / KERNEL_W, kx = tap - ky * KERNEL_W;
        far[k] = (c * X_H + ky * dilate_h) * X_W + kx * dilate_w;
        bits[k] = k < COLUMNS ? 1u << ky | 0x10000u << kx : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const int chunk = id & 7;
    const uint to = tiles_at + unit_at(id >> 3, chunk);

    float sum[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; ++i) sum[i] = 0;
    if (first < last) PREPARE(first, 0)
    for (int t = first; t < last; ++t) {
        const int stage = (t - first) & 1;
        // Step t is there for all, and where step t + 1 will go nobody reads any more.
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint at = tiles_at + stage * STAGE;
        const ulong a = UNIT_COLUMNS(at + (WM == 2 ? warpgroup * 8192 : 0));
        const ulong b = UNIT_ROWS(at + A_BYTES + (WM == 2 ? 0 : warpgroup * (WIDTH * 128)));
        UNIT_EARLY(MULTIPLY_STEP)
        if (t + 1 < last) PREPARE(t + 1, 1 - stage)
        UNIT_LATE(MULTIPLY_STEP)
        HALF_WAIT
    }
    WAIT(sum)

    parts += parts_offset + (ulong)part * part_stride;
#pragma unroll
    for (int half_ = 0; half_ < 2; ++half_) {
        const int m = m0 + (WM == 2 ? warpgroup * 64 : 0) + (warp & 3) * 16 + (lane >> 2) + half_ * 8;
        if (m < channels_out) {
#pragma unroll
            for (int i = 0; i < SUMS / 4; ++i) {
                const int column = (WM == 2 ? 0 : warpgroup * WIDTH) + i * 8 + (lane & 3) * 2;
                if (column < COLUMNS) parts[(ulong)m * COLUMNS + column] = sum[4 * i + 2 * half_];
                if (column + 1 < COLUMNS) parts[(ulong)m * COLUMNS + column + 1] = sum[4 * i + 2 * half_ + 1];
            }
        }
    }
}
