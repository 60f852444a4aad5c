// SPDX-License-Identifier: MIT
// conv2d.wgmma_half and conv2d_backward_data.wgmma_half: a convolution (or one phase of a data gradient) on tensor
// cores over images of halves or bfloat16 whose channels lie last. A step of K is 64 channels of one tap, whose
// operands come straight from the images to local memory by asynchronous copies of 16 bytes.
//
//   rows: BM = 128 * MG output pixels of all images;  columns: BN output channels;  K: blocks of 64 input channels,
//   within them taps. Weights come packed (wgmma_half_pack.cl).
//
// Two warpgroups, one above the other; each has MG times 64 rows. Sums go through local memory, in float, so that
// results and what is added to them are read and written in rows of channels. Local memory: STAGES * (BM + BN) * 128
// bytes, or 4 BM (BN + 8) if that is more, and 12 BM.
//
// Defines: KIND, STAGES, NEAR (matrix_half.clh); MG, BN; Y_KIND: of y (half_store.clh); KERNEL_H, KERNEL_W;
// DIRECT: pixel p of y is pixel p of x, without taps; CHANNEL_TAIL: input channels do not fill blocks;
// Y_FOURS: output channels are a multiple of four, and EPILOGUE takes a float4.
#include "common/half_store.clh"
#include "common/matrix_half.clh"

#define BM (128 * MG)
#define A_BYTES (BM * 128)
#define B_BYTES (BN * 128)
#define STAGE (A_BYTES + B_BYTES)
#define TAPS (KERNEL_H * KERNEL_W)
#define SUMS (BN / 2)
#if BN == 64
#define MULTIPLY HALF_64
#define WAIT UNIT_WAIT_32
#elif BN == 128
#define MULTIPLY HALF_128
#define WAIT UNIT_WAIT_64
#else
#define MULTIPLY HALF_256
#define WAIT HALF_WAIT_128
#endif
#define Y_TYPE JOIN(STORED_, Y_KIND)
// A row of sums in local memory, in floats: neighbouring rows in different banks.
#define ROW (BN + 8)
#if STAGES * STAGE > BM * ROW * 4
#define LOCAL_BYTES (STAGES * STAGE)
#else
#define LOCAL_BYTES (BM * ROW * 4)
#endif

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void wgmma_half(
    global const ushort* x, ulong x_offset, global const uchar* w, ulong w_offset, global const float* bias,
    ulong bias_offset, global Y_TYPE* y, ulong y_offset, int has_bias, int pixels, int channels_in, int channels_out,
    int x_h, int x_w, int y_h, int y_w, int out_h, int out_w, int row0, int column0, int row_step, int column_step,
    int stride_h, int stride_w, int pad_h, int pad_w, int dilate_h, int dilate_w, int steps, int steps_part,
    int tiles_m, int tiles_n, int row_blocks, long blocks_at, long part_stride EPILOGUE_PARAMETERS) {
    local uchar tiles[LOCAL_BYTES] __attribute__((aligned(1024)));
    // Of each row: the place in x of tap (0, 0) in pixels; which taps are inside, rows of them in the lower bits and
    // columns in the upper; the place in y in pixels, or -1.
    local int bases[BM];
    local int places[BM];
    local uint masks[BM];
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
        const int out_plane = out_h * out_w, image = pixel / out_plane, inside = pixel - image * out_plane;
        const int row = inside / out_w, column = inside - row * out_w;
        const int top = row * stride_h - pad_h, left = column * stride_w - pad_w;
        uint mask = 0;
        for (int k = 0; k < KERNEL_H; ++k) mask |= (uint)((uint)(top + k * dilate_h) < (uint)x_h) << k;
        for (int k = 0; k < KERNEL_W; ++k) mask |= (uint)((uint)(left + k * dilate_w) < (uint)x_w) << (16 + k);
        bases[id] = (image * x_h + top) * x_w + left;
        masks[id] = pixel < pixels ? mask : 0;
        places[id] =
            pixel < pixels ? (image * y_h + row0 + row * row_step) * y_w + column0 + column * column_step : -1;
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
    const uint to = tiles_at + UNIT_AT(id >> 3, chunk);
    const int aligned = ((ulong)x & 15) == 0;
    const int first_block = n0 / 64;
    global const uchar* weights = w + blocks_at + (long)first_block * steps * 8192 + id * 16;
#define COPY(t, stage)                                                                                              \
    {                                                                                                               \
        const int step_ = t, block_ = step_ / TAPS, tap_ = step_ - block_ * TAPS;                                   \
        const int ky_ = tap_ / KERNEL_W, kx_ = tap_ - ky_ * KERNEL_W;                                               \
        const int far_ = (ky_ * dilate_h * x_w + kx_ * dilate_w) * channels_in + block_ * 64;                       \
        const uint at_ = (stage)*STAGE;                                                                             \
        const int live_ = !CHANNEL_TAIL || block_ * 64 + chunk * 8 < channels_in;                                   \
        _Pragma("unroll") for (int i_ = 0; i_ < BN / 32; ++i_)                                                      \
            if (first_block + i_ / 2 < row_blocks)                                                                  \
                HALF_COPY(tiles_at + at_ + A_BYTES + id * 16 + i_ * 4096,                                           \
                          weights + ((long)(i_ / 2) * steps + step_) * 8192 + i_ % 2 * 4096)                        \
        if (aligned) {                                                                                              \
            _Pragma("unroll") for (int i_ = 0; i_ < 4 * MG; ++i_) {                                                 \
                const uint size_ = live_ ? (mask[i_] >> ky_ & mask[i_] >> (16 + kx_) & 1) << 4 : 0;                 \
                HALF_COPY_OF(to + at_ + i_ * 4096, x + (from[i_] + far_), size_)                                    \
            }                                                                                                       \
        } else {                                                                                                    \
            _Pragma("unroll") for (int i_ = 0; i_ < 4 * MG; ++i_) {                                                 \
                const uint size_ = live_ ? (mask[i_] >> ky_ & mask[i_] >> (16 + kx_) & 1) << 4 : 0;                 \
                HALF_COPY_SLOWLY(to + at_ + i_ * 4096, x + (from[i_] + far_), size_)                                \
            }                                                                                                       \
        }                                                                                                           \
    }

    // Of a step.
#if MG == 2
#define PRODUCT(k) HALF_PAIR(MULTIPLY, sum, SUMS, a + UNIT_STEP(32) * k, b + UNIT_STEP(32) * k, 0, 0);
#else
#define PRODUCT(k) MULTIPLY(sum, a + UNIT_STEP(32) * k, b + UNIT_STEP(32) * k, 0, 0);
#endif
#define MULTIPLY_STEP                                              \
    UNIT_BEGIN                                                     \
    _Pragma("unroll") for (int k = 0; k < 4; ++k) { PRODUCT(k) }   \
    UNIT_COMMIT

    float sum[MG * SUMS];
#pragma unroll
    for (int i = 0; i < MG * SUMS; ++i) sum[i] = 0;
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
        if (first + i < last) COPY(first + i, i)
        HALF_COPY_COMMIT
    }
    int stage = 0;
    for (int t = first; t < last; ++t) {
        HALF_COPY_WAIT
        UNIT_FENCE
        // Step t is there for all, and where step t + AHEAD will go nobody reads any more.
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint a_at = tiles_at + stage * STAGE + warpgroup * (MG * 8192), b_at = tiles_at + stage * STAGE + A_BYTES;
        const ulong a = UNIT_ROWS(a_at), b = UNIT_ROWS(b_at);
        UNIT_EARLY(MULTIPLY_STEP)
        {
            const int next = stage + AHEAD < STAGES ? stage + AHEAD : stage + AHEAD - STAGES;
            if (t + AHEAD < last) COPY(t + AHEAD, next)
            HALF_COPY_COMMIT
        }
        UNIT_LATE(MULTIPLY_STEP)
        HALF_WAIT
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    WAIT(sum)
#if MG == 2
    WAIT((sum + SUMS))
#endif

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
#include "common/half_finish.clh"
}
