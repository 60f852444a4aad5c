// SPDX-License-Identifier: MIT
// conv2d_backward_filter.wgmma_split (mma_split): dweight in float on tensor cores over plain images, computed as in split.cl.
//
//             128 (input channel, tap)
//           +-------------------+
//   64 * WM |                   |   rows     output channels
//           |                   |   columns  (input channel, tap), taps innermost; TAP_OUTER: channels innermost
//           +-------------------+   K        output pixels of all images, 64 per step; parts_sum.cl adds parts
//   WM 2: warpgroups one above the other; WM 1: beside each other
//
// Define               meaning                                                            example
// WM                   rows of the tile in 64                                             2
// PRODUCTS             3: exact float; 1: tf32, of upper halves alone (halves.clh)        3
// KERNEL_H, KERNEL_W   taps of the kernel                                                 3, 3
// TAP_OUTER            1 if input channels are a multiple of 16, so that the 16 columns
//                      of a warp have one tap                                             1
// H, W, OH, OW         sizes of x and of dy                                               56, 56, 56, 56
// STRIDE_H, STRIDE_W   strides                                                            1, 1
// ROW_TAIL             1 if output channels do not fill tiles                             0
// MMA                  see unit.clh                                                       0
//
// Work-group: one tile, for one part of K (steps_part steps). A warp reads 64 pixels of its rows of dy, or of its patches, at
// a time: halves 2 i and 2 i + 1 of a row are pixels i and i + 32, on both sides. Its rows of a step share a scale. While the
// unit multiplies one step, the same work-items split the next.
// Local memory: 2 * (BM + 128) * 256 bytes (half of that with PRODUCTS 1), and about 3 KiB.
#include "common/inline.clh"
#include "matrix/split_tile.clh"

#define PLANE (H * W)
#define OUT_PLANE (OH * OW)
#define A_TILE UNIT_ROWS
#define B_TILE UNIT_ROWS
#define A_STEP UNIT_STEP(32)
#define B_STEP UNIT_STEP(32)
#define A_ROWS (BM / 8)
#define B_ROWS (BN / 8)

// Adds a step's products, scaled back: r0 and r1 for the two rows of a work-item, `factors` for each eight columns' warp.
INLINE void add_step(const float* product, float r0, float r1, local const float* factors, float* sum) {
#pragma unroll
    for (int i = 0; i < SUMS / 4; ++i) {
        const float f = factors[i / 2], f0 = f * r0, f1 = f * r1;
        sum[4 * i] = fma(product[4 * i], f0, sum[4 * i]);
        sum[4 * i + 1] = fma(product[4 * i + 1], f0, sum[4 * i + 1]);
        sum[4 * i + 2] = fma(product[4 * i + 2], f1, sum[4 * i + 2]);
        sum[4 * i + 3] = fma(product[4 * i + 3], f1, sum[4 * i + 3]);
    }
}

// Statements of the kernel, on its locals. With functions in place of these and of those of implicit_gemm.cl,
// training steps took 1 % longer on an H200.

#define FIND_SPOTS(t)                                                                                         \
    if (id < 64) {                                                                                            \
        const uint pixel = (t)*64 + id, image = pixel / OUT_PLANE, inside = pixel % OUT_PLANE;                \
        const int top = (int)(inside / OW) * STRIDE_H - pt, left = (int)(inside % OW) * STRIDE_W - pl;        \
        uint mask = 0;                                                                                        \
        if (pixel < (uint)pixels) {                                                                           \
            _Pragma("unroll") for (int k = 0; k < KERNEL_H; ++k) mask |= ((uint)(top + k * dh) < H) << k;     \
            _Pragma("unroll") for (int k = 0; k < KERNEL_W; ++k) mask |= ((uint)(left + k * dw) < W) << (16 + k); \
        }                                                                                                     \
        spots[((t)&1) * 64 + id] = (int4)(pixel < (uint)pixels ? image * channels_out * OUT_PLANE + inside : -1, \
                                          image * channels_in * PLANE + top * W + left, (int)mask, 0);        \
    }
#define READ_A(t)                                                                                         \
    {                                                                                                     \
        const int s0 = spots[((t)&1) * 64 + lane].x, s1 = spots[((t)&1) * 64 + lane + 32].x;              \
        global const float *from0 = dy + (s0 + (m0 + warp * A_ROWS) * OUT_PLANE), *from1 = from0 + (s1 - s0); \
        _Pragma("unroll") for (int i = 0; i < A_ROWS; ++i) {                                              \
            const int live = !ROW_TAIL || m0 + warp * A_ROWS + i < channels_out;                                  \
            next_a[2 * i] = next_a[2 * i + 1] = 0;                                                            \
            if (live && s0 >= 0) next_a[2 * i] = from0[i * OUT_PLANE];                                      \
            if (live && s1 >= 0) next_a[2 * i + 1] = from1[i * OUT_PLANE];                                  \
        }                                                                                                 \
    }
INLINE uint is_inside(int4 spot, int ky, int kx) {
    return (uint)spot.z >> ky & (uint)spot.z >> kx & 1;
}
#if TAP_OUTER
#define READ_B(t)                                                                                    \
    {                                                                                                \
        const int4 s0 = spots[((t)&1) * 64 + lane], s1 = spots[((t)&1) * 64 + lane + 32];            \
        const int inside0 = live_columns && is_inside(s0, ky, kx), inside1 = live_columns && is_inside(s1, ky, kx); \
        global const float *from0 = x + (s0.y + patch), *from1 = x + (s1.y + patch);                 \
        _Pragma("unroll") for (int i = 0; i < B_ROWS; ++i) {                                         \
            next_b[2 * i] = next_b[2 * i + 1] = 0;                                                       \
            if (inside0) next_b[2 * i] = from0[i * PLANE];                                             \
            if (inside1) next_b[2 * i + 1] = from1[i * PLANE];                                         \
        }                                                                                            \
    }
#else
#define READ_B(t)                                                                                    \
    {                                                                                                \
        const int4 s0 = spots[((t)&1) * 64 + lane], s1 = spots[((t)&1) * 64 + lane + 32];            \
        _Pragma("unroll") for (int i = 0; i < B_ROWS; ++i) {                                         \
            const int2 e = patches[warp * B_ROWS + i];                                               \
            next_b[2 * i] = next_b[2 * i + 1] = 0;                                                       \
            if (is_inside(s0, e.y & 255, e.y >> 8)) next_b[2 * i] = x[s0.y + e.x];                        \
            if (is_inside(s1, e.y & 255, e.y >> 8)) next_b[2 * i + 1] = x[s1.y + e.x];                    \
        }                                                                                            \
    }
#endif
// Rows of `next` to local memory as halves, upper plane and, if there is one, lower plane `apart` bytes behind.
#define KEEP(next, rows, from, apart, unscales, UNSCALE)                                                  \
    {                                                                                      \
        float most_ = 0;                                                                   \
        _Pragma("unroll") for (int i = 0; i < 2 * (rows); ++i) most_ = fmax(most_, fabs(next[i])); \
        const uint most = warp_max(as_uint(most_));                                        \
        const float scale = split_scale(most);                                             \
        if (lane == 0) (unscales)[warp] = UNSCALE(most);                             \
        local uchar* to = (from) + warp * (rows)*128 + (lane & 3) * 4;                     \
        _Pragma("unroll") for (int i = 0; i < (rows); ++i) {                               \
            const float a = next[2 * i] * scale, b = next[2 * i + 1] * scale;              \
            SPLIT_STORE(a, b, to + unit_at(i, lane >> 2), to + (apart) + unit_at(i, lane >> 2)) \
        }                                                                                  \
    }
#define KEEP_A(stage) KEEP(next_a, A_ROWS, tiles + (stage)*STAGE, A_PLANE, unscale_a + (stage)*8, split_unscale)
#define KEEP_B(stage) \
    KEEP(next_b, B_ROWS, tiles + (stage)*STAGE + PLANES * A_PLANE, B_PLANE, unscale_b + (stage)*8, split_unscale_cut)
#define MULTIPLY_STEP                                                                                                \
    MULTIPLY(A_TILE(at + row_bytes), A_TILE(at + A_PLANE + row_bytes), B_TILE(at + PLANES * A_PLANE + column_bytes), \
             B_TILE(at + PLANES * A_PLANE + B_PLANE + column_bytes), 0, 0)
#if TAP_OUTER
#define DWEIGHT(column) \
    (((ulong)m * channels_in + (column) % channels_in) * (KERNEL_H * KERNEL_W) + (column) / channels_in)
#else
#define DWEIGHT(column) ((ulong)m * columns + (column))
#endif

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void split_filter(
    global const float* x, ulong x_offset, global const float* dy, ulong dy_offset, global float* dweight,
    ulong dweight_offset, int pixels, int channels_in, int channels_out, int pt, int pl, int dh, int dw, int steps,
    int steps_part, int tiles_m, int tiles_n, long part_stride EPILOGUE_PARAMETERS) {
    local uchar tiles[2 * STAGE] __attribute__((aligned(1024)));
    local float unscale_a[16], unscale_b[16];
#if !TAP_OUTER
    local int2 patches[BN];
#endif
    // Of each pixel of a step: place in dy, place in x of tap (0, 0), and which taps are inside.
    local int4 spots[2 * 64];
    const uint tiles_at = (uint)tiles;
    const int id = get_local_id(0), warp = id >> 5, lane = id & 31, warpgroup = id >> 7;
    const int m0 = (int)get_group_id(0) % tiles_m * BM, n0 = (int)get_group_id(0) / tiles_m % tiles_n * BN;
    const int part = (int)get_group_id(0) / tiles_m / tiles_n;
    const int first = part * steps_part, last = min(steps, first + steps_part);
    const int columns = channels_in * (KERNEL_H * KERNEL_W);
    x += x_offset;
    dy += dy_offset;

#if TAP_OUTER
    const int first_column = n0 + warp * B_ROWS, tap = first_column / channels_in, channel = first_column % channels_in;
    const int ky = tap / KERNEL_W, kx = 16 + tap % KERNEL_W, live_columns = first_column < columns;
    const int patch = channel * PLANE + ky * dh * W + (kx - 16) * dw;
#else
    if (id < BN) {
        const int column = n0 + id, c = column / (KERNEL_H * KERNEL_W), tap = column - c * (KERNEL_H * KERNEL_W);
        const int ky = tap / KERNEL_W, kx = tap - ky * KERNEL_W;
        patches[id] = column < columns ? (int2)(c * PLANE + ky * dh * W + kx * dw, ky | (16 + kx) << 8)
                                       : (int2)(0, 15 | 31 << 8);
    }
#endif

    float next_a[2 * A_ROWS], next_b[2 * B_ROWS], sum[SUMS], product[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; ++i) sum[i] = product[i] = 0;
    // Stages and spots go by the step's parity; rows travel in registers for a whole step.
    FIND_SPOTS(first)
    barrier(CLK_LOCAL_MEM_FENCE);
    if (first < last) {
        READ_A(first)
        READ_B(first)
        FIND_SPOTS(first + 1)
        KEEP_A(first & 1)
        KEEP_B(first & 1)
        barrier(CLK_LOCAL_MEM_FENCE);
        READ_A(first + 1)
        READ_B(first + 1)
        FIND_SPOTS(first + 2)
        UNIT_FENCE
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int t = first; t < last; ++t) {
        const int stage = t & 1;
        const uint at = tiles_at + stage * STAGE;
        const int row_bytes = (WM == 2 ? warpgroup : 0) * 8192, column_bytes = (WM == 2 ? 0 : warpgroup) * 8192;
        UNIT_EARLY(MULTIPLY_STEP)
        if (t + 1 < last) {
            KEEP_A(1 - stage)
            READ_A(t + 2)
            KEEP_B(1 - stage)
            READ_B(t + 2)
            FIND_SPOTS(t + 3)
            UNIT_FENCE
        }
        UNIT_LATE(MULTIPLY_STEP)
        UNIT_WAIT(product)
        // A warp makes the rows of A that it multiplies (WM 2), or half of them.
        const float r0 = unscale_a[stage * 8 + (WM == 2 ? warp : (warp & 3) * 2)];
        const float r1 = unscale_a[stage * 8 + (WM == 2 ? warp : (warp & 3) * 2 + 1)];
        local const float* factors = unscale_b + stage * 8 + (WM == 2 ? 0 : warpgroup * 4);
        add_step(product, r0, r1, factors, sum);
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    dweight += dweight_offset + (ulong)part * part_stride;
#pragma unroll
    for (int half_ = 0; half_ < 2; ++half_) {
        const int m = m0 + (WM == 2 ? warpgroup * 64 : 0) + (warp & 3) * 16 + (lane >> 2) + half_ * 8;
        if (m < channels_out) {
#pragma unroll
            for (int i = 0; i < SUMS / 4; ++i) {
                const int column = n0 + (WM == 2 ? 0 : warpgroup * 64) + (lane & 3) * 2 + 8 * i;
                float v0 = sum[4 * i + 2 * half_], v1 = sum[4 * i + 2 * half_ + 1];
                if (column < columns) {
                    const ulong at = DWEIGHT(column);
                    EPILOGUE(v0, at);
                    dweight[at] = v0;
                }
                if (column + 1 < columns) {
                    const ulong at = DWEIGHT(column + 1);
                    EPILOGUE(v1, at);
                    dweight[at] = v1;
                }
            }
        }
    }
}
