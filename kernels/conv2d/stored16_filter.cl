// SPDX-License-Identifier: MIT
// conv2d_backward_filter.wgmma_half (mma_half): dweight on tensor cores from images in halves or bfloat16, channels last.
//
//             BN: blocks of 64 input channels of one tap
//           +-------------------+
//   64 * WM |                   |   rows     output channels
//           |                   |   columns  (block of 64 input channels, tap), taps innermost
//           +-------------------+   K        output pixels of all images, 64 per step
//   WM 2: warpgroups one above the other; WM 1: beside each other
//
// Define               meaning                                                            example
// KIND, STAGES, NEAR   see copies16.clh; x is read several times                          1, 4, 0
// WM                   rows of the tile in 64                                             2
// BN                   columns of the tile                                                128
// PARTS                1 if sums go to `dweight` as [part][output channel][tap][input
//                      channel] (stored16_filter_sum.cl); 0 if there is one tap and one
//                      part, and they are the gradient                                    1
// KERNEL_H, KERNEL_W   taps of the kernel                                                 3, 3
// H, W, OH, OW         sizes of x and of dy                                               56, 56, 56, 56
// STRIDE_H, STRIDE_W   strides                                                            1, 1
// MMA                  see unit.clh                                                       0
//
// Work-group: one tile, for one part of K (steps_part steps). The channels of a pixel come to local memory as they lie in
// the images, by asynchronous copies of 16 bytes, and the unit reads both operands transposed. A work-item copies one chunk of
// two pixels of every block. Local memory: STAGES * (BM + BN) * 128 bytes.
#include "matrix/copies16.clh"

#define BM (64 * WM)
#define BLOCKS (BN / 64)
#define A_BYTES (BM * 128)
#define STAGE ((BM + BN) * 128)
#define TAPS (KERNEL_H * KERNEL_W)
#define WIDTH (BN * WM / 2)
#include "matrix/width.clh"
// Far outside of every image.
#define NOWHERE (-(1 << 30))

// Statements of the kernel, on its locals.

#define COPY(t, stage)                                                                                             \
    _Pragma("unroll") for (int i_ = 0; i_ < 2; ++i_) {                                                             \
        const int pixel_ = (t)*64 + (id >> 3) + 32 * i_, live_ = pixel_ < pixels;                                  \
        const int image_ = pixel_ / (OH * OW), inside_ = pixel_ - image_ * (OH * OW);                              \
        const int row_ = inside_ / OW, top_ = live_ ? row_ * STRIDE_H - pt : NOWHERE;                              \
        const int left_ = (inside_ - row_ * OW) * STRIDE_W - pl;                                                   \
        const uint at_ = to + (stage)*STAGE + i_ * 4096;                                                           \
        _Pragma("unroll") for (int j_ = 0; j_ < WM; ++j_) {                                                        \
            const int m_ = m0 + j_ * 64 + chunk * 8;                                                               \
            const uint size_ = live_ && m_ < channels_out ? 16 : 0;                                                \
            COPY_16_OF(at_ + j_ * 8192, dy + (pixel_ * channels_out + m_), size_)                                  \
        }                                                                                                          \
        _Pragma("unroll") for (int j_ = 0; j_ < BLOCKS; ++j_) {                                                    \
            const int y_ = top_ + down[j_], x_ = left_ + right[j_];                                                \
            const uint size_ = (uint)y_ < H && (uint)x_ < W ? 16 : 0;                                              \
            COPY_X(at_ + A_BYTES + j_ * 8192, x + (((image_ * H + y_) * W + x_) * channels_in + channel[j_]), size_) \
        }                                                                                                          \
    }
kernel __attribute__((reqd_work_group_size(256, 1, 1))) void stored16_filter(
    global const ushort* x, ulong x_offset, global const ushort* dy, ulong dy_offset, global float* dweight,
    ulong dweight_offset, int pixels, int channels_in, int channels_out, int pt, int pl, int dh, int dw, int steps,
    int steps_part, int tiles_m, int tiles_n, long part_stride EPILOGUE_PARAMETERS) {
    local uchar tiles[STAGES * STAGE] __attribute__((aligned(1024)));
    const uint tiles_at = (uint)tiles;
    const int id = get_local_id(0), warp = id >> 5, lane = id & 31, warpgroup = id >> 7;
    const int m0 = (int)get_group_id(0) % tiles_m * BM, block0 = (int)get_group_id(0) / tiles_m % tiles_n * BLOCKS;
    const int part = (int)get_group_id(0) / tiles_m / tiles_n;
    const int first = part * steps_part, last = min(steps, first + steps_part);
    x += x_offset;
    dy += dy_offset;

    // A work-item copies one 16-byte chunk of two pixels of every block.
    const int chunk = id & 7;
    const uint to = tiles_at + unit_at(id >> 3, chunk);
    int down[BLOCKS], right[BLOCKS], channel[BLOCKS];
#pragma unroll
    for (int j = 0; j < BLOCKS; ++j) {
        const int block = block0 + j, tap = block % TAPS, ky = tap / KERNEL_W;
        channel[j] = block / TAPS * 64 + chunk * 8;
        down[j] = channel[j] < channels_in ? ky * dh : NOWHERE;
        right[j] = (tap - ky * KERNEL_W) * dw;
    }

#define A_TILE(at) UNIT_COLUMNS(at + (WM == 2 ? warpgroup * 8192 : 0))
#define B_TILE(at) UNIT_COLUMNS(at + A_BYTES + (WM == 2 ? 0 : warpgroup * (WIDTH * 128)))
#define A_NEXT UNIT_STEP(2048)
#define B_NEXT UNIT_STEP(2048)
#define A_WAY 1
#define B_WAY 1
#define PAIRS_OF_64 0
#include "matrix/pipeline16.clh"

    dweight += dweight_offset + (ulong)part * part_stride;
#pragma unroll
    for (int half_ = 0; half_ < 2; ++half_) {
        const int m = m0 + (WM == 2 ? warpgroup * 64 : 0) + (warp & 3) * 16 + (lane >> 2) + half_ * 8;
        if (m < channels_out) {
#pragma unroll
            for (int i = 0; i < SUMS / 4; ++i) {
                const int block = block0 + (WM == 2 ? 0 : warpgroup * (WIDTH / 64)) + i / 8, tap = block % TAPS;
                const int c = block / TAPS * 64 + i % 8 * 8 + (lane & 3) * 2;
                float v0 = sum[4 * i + 2 * half_], v1 = sum[4 * i + 2 * half_ + 1];
                if (c < channels_in) {
#if PARTS
                    const ulong at = ((ulong)m * TAPS + tap) * channels_in + c;
                    *(global float2*)(dweight + at) = (float2)(v0, v1);
#else
                    const ulong at = (ulong)m * channels_in + c;
                    EPILOGUE(v0, at);
                    dweight[at] = v0;
                    EPILOGUE(v1, at + 1);
                    dweight[at + 1] = v1;
#endif
                }
            }
        }
    }
}
