// SPDX-License-Identifier: MIT
// conv2d.wgmma_split and conv2d_backward_data.wgmma_split: a convolution (or one phase of a data gradient) in exact
// float on tensor cores: operands in two halves each (common/split_half.clh), three products, sums of 64 of K in
// the tensor core, the rest in float outside of it (it rounds toward zero). With PRODUCTS 1 it has TF32's precision:
// upper halves and their product alone.
//
//   rows: output channels, BM = 64 * WM;  columns: 128 output pixels of all images, in two blocks of 64: columns
//   2 i and 2 i + 1 of a block are its pixels PIXEL(i) and PIXEL(i) + 32, so that a warp reads 32 pixels that follow
//   each other, and a work-item ends with eight that do (with Y_QUADS), or four of them with one each;
//   K: input channels, within them taps, in steps of 64; with BLOCKED (channels fill steps, or one tap) blocks of
//   64 channels, within them taps, so that a step has one tap. Weights come packed (wgmma_split_pack.cl).
//
// Two warpgroups, beside each other in rows (WM 2) or in columns (WM 1). While the tensor cores multiply step t,
// the same work-items turn the pixels of step t + 1, which came to registers during step t - 1, into halves in
// local memory. Each pixel (column) has its own scale a step. Local memory: 256 BM + 256 * 128 bytes twice (half of
// that with PRODUCTS 1), and about 4 KiB.
//
// Defines: WM; PRODUCTS; KERNEL_H, KERNEL_W; BLOCKED; PLANE: x_h * x_w;
// CHANNEL_TAIL: channels do not fill the last step; Y_QUADS: y is written without gaps and its planes are multiples of
// four pixels.
#include "common/matrix_tile.clh"

#if Y_QUADS
#define PIXEL(i) (((i)&3) * 8 + ((i) >> 2))
#else
#define PIXEL(i) (i)
#endif
#define A_TILE(at) UNIT_ROWS(at)
#define A_STEP UNIT_STEP(32)
#define B_TILE(at) UNIT_COLUMNS(at)
#define B_STEP UNIT_STEP(2048)
#define ASYNC_COPY(to, from) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#define ASYNC_COMMIT asm volatile("cp.async.commit_group;" ::: "memory");
#define ASYNC_WAIT asm volatile("cp.async.wait_group 0;" ::: "memory");

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void wgmma_split(
    global const float* x, ulong x_offset, global const uchar* w, ulong w_offset, global const float* bias,
    ulong bias_offset, global float* y, ulong y_offset, int has_bias, int pixels, int channels_in, int channels_out,
    int x_h, int x_w, int y_h, int y_w, int out_h, int out_w, int row0, int column0, int row_step, int column_step,
    int stride_h, int stride_w, int pad_h, int pad_w, int dilate_h, int dilate_w, int steps, int steps_part,
    int tiles_m, int tiles_n, long table_at, long planes_at, long part_stride EPILOGUE_PARAMETERS) {
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
    const int plane = PLANE, out_plane = out_h * out_w, y_plane = y_h * y_w;
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
        const int row = inside / out_w, top = row * stride_h - pad_h;
        const int left = (inside - row * out_w) * stride_w - pad_w;
        base[i] = image * channels_in * plane + top * x_w + left;
        mask[i] = 0;
        for (int k = 0; k < KERNEL_H; ++k) mask[i] |= ((uint)(top + k * dilate_h) < (uint)x_h) << k;
        for (int k = 0; k < KERNEL_W; ++k) mask[i] |= ((uint)(left + k * dilate_w) < (uint)x_w) << (16 + k);
        if (pixel >= pixels) mask[i] = 0;
        if (k0 == 0)
            places[local_pixel] =
                pixel < pixels ? image * channels_out * y_plane + (row0 + row * row_step) * y_w + column0 +
                                     (inside - row * out_w) * column_step
                               : -1;
    }
#if BLOCKED
    x += (long)k0 * plane;
#else
    global const int2* table = (global const int2*)(w + table_at) + k0;
#endif
    global const uchar* weights = w + planes_at + (long)tile_m * steps * (PLANES * A_PLANE) + id * 16;
    float next[32], sum[SUMS], product[SUMS];
#if BLOCKED
#define TAPS (KERNEL_H * KERNEL_W)
#define READ(t)                                                                                       \
    {                                                                                                 \
        const int channel = (t) / TAPS * 64, tap = (t) % TAPS, ky = tap / KERNEL_W, kx = tap % KERNEL_W; \
        const int far = channel * plane + ky * dilate_h * x_w + kx * dilate_w;                        \
        const int inside0 = mask[0] >> ky & mask[0] >> (16 + kx) & 1;                                 \
        const int inside1 = mask[1] >> ky & mask[1] >> (16 + kx) & 1;                                 \
        global const float *from0 = x + (base[0] + far), *from1 = x + (base[1] + far);                \
        _Pragma("unroll") for (int i = 0; i < 16; ++i) {                                              \
            const int live = !CHANNEL_TAIL || channel + k0 + 4 * i < channels_in;                                      \
            next[2 * i] = next[2 * i + 1] = 0;                                                        \
            if (inside0 && live) next[2 * i] = from0[4 * i * PLANE];                                  \
            if (inside1 && live) next[2 * i + 1] = from1[4 * i * PLANE];                              \
        }                                                                                             \
    }
#else
#define INSIDE(i, e) (mask[i] >> ((e).y & 255) & mask[i] >> ((e).y >> 8) & 1)
#define READ(t)                                                    \
    _Pragma("unroll") for (int i = 0; i < 16; ++i) {               \
        const int2 e = table[(t)*64 + 4 * i];                      \
        next[2 * i] = next[2 * i + 1] = 0;                         \
        if (INSIDE(0, e)) next[2 * i] = x[base[0] + e.x];          \
        if (INSIDE(1, e)) next[2 * i + 1] = x[base[1] + e.x];      \
    }
#endif
#define COPY_WEIGHTS(t, stage)                                                                  \
    {                                                                                           \
        _Pragma("unroll") for (int i = 0; i < PLANES * A_PLANE / 4096; ++i)                     \
            ASYNC_COPY(tiles_at + (stage)*STAGE + id * 16 + i * 4096,                           \
                       weights + (long)(t) * (PLANES * A_PLANE) + i * 4096)                     \
        ASYNC_COMMIT                                                                            \
    }
// The largest magnitude of every column, then halves of all of them. One barrier inside, and one between two of
// these.
#define KEEP(stage)                                                                             \
    {                                                                                           \
        float most0 = 0, most1 = 0;                                                             \
        _Pragma("unroll") for (int i = 0; i < 16; ++i) {                                        \
            most0 = fmax(most0, fabs(next[2 * i]));                                             \
            most1 = fmax(most1, fabs(next[2 * i + 1]));                                         \
        }                                                                                       \
        uint m0_ = as_uint(most0), m1_ = as_uint(most1);                                        \
        *(local uint2*)(largest + k0 * BN + column) = (uint2)(m0_, m1_);                        \
        barrier(CLK_LOCAL_MEM_FENCE);                                                           \
        _Pragma("unroll") for (int i = 0; i < 4; ++i) {                                         \
            const uint2 other = *(local const uint2*)(largest + i * BN + column);               \
            m0_ = max(m0_, other.x);                                                            \
            m1_ = max(m1_, other.y);                                                            \
        }                                                                                       \
        if (k0 == 0) {                                                                          \
            unscale[(stage)*BN + column] = SPLIT_UNSCALE_CUT(m0_);                                  \
            unscale[(stage)*BN + column + 1] = SPLIT_UNSCALE_CUT(m1_);                              \
        }                                                                                       \
        const float s0 = SPLIT_SCALE(m0_), s1 = SPLIT_SCALE(m1_);                               \
        local uchar* to = tiles + (stage)*STAGE + PLANES * A_PLANE + block * 8192;                       \
        _Pragma("unroll") for (int i = 0; i < 16; ++i) {                                        \
            const float a = next[2 * i] * s0, b = next[2 * i + 1] * s1;                         \
            const int at = UNIT_AT(k0 + 4 * i, lane >> 2) + (lane & 3) * 4;                    \
            SPLIT_STORE(a, b, to + at, to + B_PLANE + at)                                       \
        }                                                                                       \
    }

#pragma unroll
    for (int i = 0; i < SUMS; ++i) sum[i] = product[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (first < last) {
        COPY_WEIGHTS(first, 0)
        READ(first)
        KEEP(0)
        if (first + 1 < last) READ(first + 1)
        ASYNC_WAIT
        UNIT_FENCE
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    int stage = 0;
    for (int t = first; t < last; ++t) {
        const uint at = tiles_at + stage * STAGE;
#if WM == 2
#define MULTIPLY_STEP                                                                                                \
    MULTIPLY(A_TILE(at + warpgroup * 8192), A_TILE(at + A_PLANE + warpgroup * 8192), B_TILE(at + PLANES * A_PLANE),   \
             B_TILE(at + PLANES * A_PLANE + B_PLANE), 0, 1)
#else
#define MULTIPLY_STEP                                                                                                \
    MULTIPLY(A_TILE(at), A_TILE(at + A_PLANE), B_TILE(at + PLANES * A_PLANE + warpgroup * 8192),                      \
             B_TILE(at + PLANES * A_PLANE + B_PLANE + warpgroup * 8192), 0, 1)
#endif
        UNIT_EARLY(MULTIPLY_STEP)
        if (t + 1 < last) {
            COPY_WEIGHTS(t + 1, 1 - stage)
            KEEP(1 - stage)
            if (t + 2 < last) READ(t + 2)
            ASYNC_WAIT
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
#define SUM_AT(q, half_, j) (4 * (((q) >> 2) * 8 + ((q)&1) * 4 + (j)) + 2 * (half_) + ((q) >> 1 & 1))
#define PLACE_AT(q, j) \
    ((WM == 2 ? (q) >> 2 : warpgroup) * 64 + ((q) >> 1 & 1) * 32 + PIXEL(4 * (((q)&1) * 4 + (j)) + (lane & 3)))
#include "common/matrix_finish.clh"
}
