// SPDX-License-Identifier: MIT
// conv2d_backward_filter.wgmma_half: dweight on tensor cores over images of halves or bfloat16 whose channels lie last.
// A pixel's channels come to local memory as they lie in the images, by asynchronous copies of 16 bytes; the tensor
// cores read both operands transposed.
//
//   rows: BM = 64 * WM output channels;  columns: BN in blocks of 64, each 64 input channels of one tap, taps innermost;
//   K: output pixels of all images in steps of 64, in parts of `steps_part` steps.
//
// Two warpgroups, one above the other (WM 2) or beside each other (WM 1). PARTS: sums go to `dweight` as
// [part][output channel][tap][input channel] (wgmma_half_filter_sum.cl); else there is one tap and one part, and they are
// the gradient. Local memory: STAGES * (BM + BN) * 128 bytes.
//
// Defines: KIND, STAGES, NEAR (matrix_half.clh; x is read several times); WM; BN; PARTS;
// KERNEL_H, KERNEL_W; H, W, OH, OW, STRIDE_H, STRIDE_W: sizes.
#include "common/matrix_half.clh"

#define BM (64 * WM)
#define BLOCKS (BN / 64)
#define A_BYTES (BM * 128)
#define STAGE ((BM + BN) * 128)
#define TAPS (KERNEL_H * KERNEL_W)
#define WIDTH (BN * WM / 2)
#define SUMS (WIDTH / 2)
#if WIDTH == 64
#define MULTIPLY HALF_64
#define WAIT UNIT_WAIT_32
#elif WIDTH == 128
#define MULTIPLY HALF_128
#define WAIT UNIT_WAIT_64
#else
#define MULTIPLY HALF_256
#define WAIT HALF_WAIT_128
#endif
// Far outside of every image.
#define NOWHERE (-(1 << 30))

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void wgmma_half_filter(
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
    const uint to = tiles_at + UNIT_AT(id >> 3, chunk);
    const int aligned = (((ulong)x | (ulong)dy) & 15) == 0;
    int down[BLOCKS], right[BLOCKS], channel[BLOCKS];
#pragma unroll
    for (int j = 0; j < BLOCKS; ++j) {
        const int block = block0 + j, tap = block % TAPS, ky = tap / KERNEL_W;
        channel[j] = block / TAPS * 64 + chunk * 8;
        down[j] = channel[j] < channels_in ? ky * dh : NOWHERE;
        right[j] = (tap - ky * KERNEL_W) * dw;
    }
#define COPY_STEP(t, stage, COPY_A, COPY_B)                                                                        \
    _Pragma("unroll") for (int i_ = 0; i_ < 2; ++i_) {                                                             \
        const int pixel_ = (t)*64 + (id >> 3) + 32 * i_, live_ = pixel_ < pixels;                                  \
        const int image_ = pixel_ / (OH * OW), inside_ = pixel_ - image_ * (OH * OW);                              \
        const int row_ = inside_ / OW, top_ = live_ ? row_ * STRIDE_H - pt : NOWHERE;                              \
        const int left_ = (inside_ - row_ * OW) * STRIDE_W - pl;                                                   \
        const uint at_ = to + (stage)*STAGE + i_ * 4096;                                                           \
        _Pragma("unroll") for (int j_ = 0; j_ < WM; ++j_) {                                                        \
            const int m_ = m0 + j_ * 64 + chunk * 8;                                                               \
            const uint size_ = live_ && m_ < channels_out ? 16 : 0;                                                \
            COPY_A(at_ + j_ * 8192, dy + (pixel_ * channels_out + m_), size_)                                      \
        }                                                                                                          \
        _Pragma("unroll") for (int j_ = 0; j_ < BLOCKS; ++j_) {                                                    \
            const int y_ = top_ + down[j_], x_ = left_ + right[j_];                                                \
            const uint size_ = (uint)y_ < H && (uint)x_ < W ? 16 : 0;                                              \
            COPY_B(at_ + A_BYTES + j_ * 8192, x + (((image_ * H + y_) * W + x_) * channels_in + channel[j_]), size_) \
        }                                                                                                          \
    }
#define COPY(t, stage)                                                                   \
    if (aligned)                                                                         \
        COPY_STEP(t, stage, HALF_COPY_ONCE_OF, HALF_COPY_OF)                             \
    else                                                                                 \
        COPY_STEP(t, stage, HALF_COPY_SLOWLY, HALF_COPY_SLOWLY)

#define MULTIPLY_STEP                                                                                                \
    UNIT_BEGIN                                                                                                       \
    _Pragma("unroll") for (int k = 0; k < 4; ++k) MULTIPLY(sum, a + UNIT_STEP(2048) * k, b + UNIT_STEP(2048) * k, 1, 1); \
    UNIT_COMMIT

    float sum[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; ++i) sum[i] = 0;
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
        if (first + i < last) {
            COPY(first + i, i)
        }
        HALF_COPY_COMMIT
    }
    int stage = 0;
    for (int t = first; t < last; ++t) {
        HALF_COPY_WAIT
        UNIT_FENCE
        // Step t is there for all, and where step t + AHEAD will go nobody reads any more.
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint at = tiles_at + stage * STAGE;
        const ulong a = UNIT_COLUMNS(at + (WM == 2 ? warpgroup * 8192 : 0));
        const ulong b = UNIT_COLUMNS(at + A_BYTES + (WM == 2 ? 0 : warpgroup * (WIDTH * 128)));
        UNIT_EARLY(MULTIPLY_STEP)
        {
            const int next = stage + AHEAD < STAGES ? stage + AHEAD : stage + AHEAD - STAGES;
            if (t + AHEAD < last) {
                COPY(t + AHEAD, next)
            }
            HALF_COPY_COMMIT
        }
        UNIT_LATE(MULTIPLY_STEP)
        HALF_WAIT
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    WAIT(sum)

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
