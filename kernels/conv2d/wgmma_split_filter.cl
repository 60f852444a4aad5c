// SPDX-License-Identifier: MIT
// conv2d_backward_filter.wgmma_split: dweight in exact float on tensor cores, as wgmma_split.cl computes.
//
//   rows: output channels, BM = 64 * WM;  columns: 128 of (input channel, tap), taps innermost, or with TAP_OUTER
//   (channels are a multiple of 16) channels innermost, so that the 16 columns of a warp have one tap;
//   K: output pixels of all images in steps of 64, in parts of `steps_part` steps (split_sum.cl adds them).
//
// A warp reads 64 pixels of a row of dy, or of a patch, at a time (halves 2 i and 2 i + 1 of a row are pixels i and
// i + 32, on both sides); such a row has its own scale. While the tensor
// cores multiply one step, the same work-items make the next. Local memory: 256 BM + 512 * 128 bytes twice.
//
// Defines: WM; KERNEL_H, KERNEL_W; TAP_OUTER.
#include "common/split_half.clh"
#include "common/wgmma.clh"

#define BM (64 * WM)
#define BN 128
#if WM == 2
#define SUMS 64
#define WGMMA WGMMA_128
#define WGMMA_WAIT WGMMA_WAIT_64
#else
#define SUMS 32
#define WGMMA WGMMA_64
#define WGMMA_WAIT WGMMA_WAIT_32
#endif
#define A_PLANE (BM * 128)
#define B_PLANE (BN * 128)
#define STAGE (2 * (A_PLANE + B_PLANE))
#define A_ROWS (BM / 8)
#define B_ROWS (BN / 8)

inline uint warp_max(uint v) {
    uint most;
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(most) : "r"(v));
    return most;
}

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void wgmma_split_filter(
    global const float* x, ulong x_offset, global const float* dy, ulong dy_offset, global float* dweight,
    ulong dweight_offset, int pixels, int channels_in, int channels_out, int h, int w, int oh, int ow, int sh, int sw,
    int pt, int pl, int dh, int dw, int steps, int steps_part, int tiles_m, int tiles_n,
    long part_stride EPILOGUE_PARAMETERS) {
    local uchar tiles[2 * STAGE] __attribute__((aligned(1024)));
    local float unscale_a[2 * BM], unscale_b[2 * BN] __attribute__((aligned(8)));
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
    const int plane = h * w, out_plane = oh * ow, columns = channels_in * (KERNEL_H * KERNEL_W);
    x += x_offset;
    dy += dy_offset;

#if TAP_OUTER
    const int first_column = n0 + warp * B_ROWS, tap = first_column / channels_in, channel = first_column % channels_in;
    const int ky = tap / KERNEL_W, kx = 16 + tap % KERNEL_W, live_columns = first_column < columns;
    const int patch = channel * plane + ky * dh * w + (kx - 16) * dw;
#else
    if (id < BN) {
        const int column = n0 + id, c = column / (KERNEL_H * KERNEL_W), tap = column - c * (KERNEL_H * KERNEL_W);
        const int ky = tap / KERNEL_W, kx = tap - ky * KERNEL_W;
        patches[id] = column < columns ? (int2)(c * plane + ky * dh * w + kx * dw, ky | (16 + kx) << 8)
                                       : (int2)(0, 15 | 31 << 8);
    }
#endif
#define FIND_SPOTS(t)                                                                                  \
    if (id < 64) {                                                                                     \
        const int pixel = (t)*64 + id, image = pixel / out_plane, inside = pixel - image * out_plane;  \
        const int row = inside / ow, top = row * sh - pt, left = (inside - row * ow) * sw - pl;        \
        uint mask = 0;                                                                                 \
        if (pixel < pixels) {                                                                          \
            for (int k = 0; k < KERNEL_H; ++k) mask |= ((uint)(top + k * dh) < (uint)h) << k;          \
            for (int k = 0; k < KERNEL_W; ++k) mask |= ((uint)(left + k * dw) < (uint)w) << (16 + k);  \
        }                                                                                              \
        spots[((t)&1) * 64 + id] =                                                                     \
            (int4)(pixel < pixels ? image * channels_out * out_plane + inside : -1,                    \
                   image * channels_in * plane + top * w + left, (int)mask, 0);                        \
    }
    float next[2 * (A_ROWS > B_ROWS ? A_ROWS : B_ROWS)], sum[SUMS], product[SUMS];
#define READ_A(t)                                                                                         \
    {                                                                                                     \
        const int s0 = spots[((t)&1) * 64 + lane].x, s1 = spots[((t)&1) * 64 + lane + 32].x;              \
        global const float *from0 = dy + (s0 + (m0 + warp * A_ROWS) * out_plane), *from1 = from0 + (s1 - s0); \
        _Pragma("unroll") for (int i = 0; i < A_ROWS; ++i) {                                              \
            const int live = m0 + warp * A_ROWS + i < channels_out;                                       \
            next[2 * i] = next[2 * i + 1] = 0;                                                            \
            if (live && s0 >= 0) next[2 * i] = *from0;                                                    \
            if (live && s1 >= 0) next[2 * i + 1] = *from1;                                                \
            from0 += out_plane;                                                                           \
            from1 += out_plane;                                                                           \
        }                                                                                                 \
    }
#define INSIDE(s, ky, kx) ((uint)(s).z >> (ky) & (uint)(s).z >> (kx) & 1)
#if TAP_OUTER
#define READ_B(t)                                                                                    \
    {                                                                                                \
        const int4 s0 = spots[((t)&1) * 64 + lane], s1 = spots[((t)&1) * 64 + lane + 32];            \
        const int inside0 = live_columns && INSIDE(s0, ky, kx), inside1 = live_columns && INSIDE(s1, ky, kx); \
        global const float *from0 = x + (s0.y + patch), *from1 = x + (s1.y + patch);                 \
        _Pragma("unroll") for (int i = 0; i < B_ROWS; ++i) {                                         \
            next[2 * i] = next[2 * i + 1] = 0;                                                       \
            if (inside0) next[2 * i] = *from0;                                                       \
            if (inside1) next[2 * i + 1] = *from1;                                                   \
            from0 += plane;                                                                          \
            from1 += plane;                                                                          \
        }                                                                                            \
    }
#else
#define READ_B(t)                                                                                    \
    {                                                                                                \
        const int4 s0 = spots[((t)&1) * 64 + lane], s1 = spots[((t)&1) * 64 + lane + 32];            \
        _Pragma("unroll") for (int i = 0; i < B_ROWS; ++i) {                                         \
            const int2 e = patches[warp * B_ROWS + i];                                               \
            next[2 * i] = next[2 * i + 1] = 0;                                                       \
            if (INSIDE(s0, e.y & 255, e.y >> 8)) next[2 * i] = x[s0.y + e.x];                        \
            if (INSIDE(s1, e.y & 255, e.y >> 8)) next[2 * i + 1] = x[s1.y + e.x];                    \
        }                                                                                            \
    }
#endif
// Rows of `next` to local memory as halves, upper plane and lower plane `apart` bytes behind.
#define KEEP(rows, from, apart, unscales)                                              \
    _Pragma("unroll") for (int i = 0; i < rows; ++i) {                                 \
        const float a_ = next[2 * i], b_ = next[2 * i + 1];                            \
        const uint most =                                                              \
            warp_max(max(as_uint(a_) & 0x7fffffffu, as_uint(b_) & 0x7fffffffu));       \
        const float scale = SPLIT_SCALE(most), a = a_ * scale, b = b_ * scale;         \
        const float ua = split_upper(a), ub = split_upper(b);                          \
        const int row = warp * rows + i;                                               \
        local uchar* to = (from) + WGMMA_AT(row, lane >> 2) + (lane & 3) * 4;          \
        *(local uint*)to = split_pack(ua, ub);                                         \
        *(local uint*)(to + (apart)) = split_pack(a - ua, b - ub);                     \
        if (lane == 0) (unscales)[row] = SPLIT_UNSCALE(most);                          \
    }
#define KEEP_A(stage) KEEP(A_ROWS, tiles + (stage)*STAGE, A_PLANE, unscale_a + (stage)*BM)
#define KEEP_B(stage) KEEP(B_ROWS, tiles + (stage)*STAGE + 2 * A_PLANE, B_PLANE, unscale_b + (stage)*BN)

#pragma unroll
    for (int i = 0; i < SUMS; ++i) sum[i] = product[i] = 0;
    // Stages and spots go by the step's parity.
    FIND_SPOTS(first)
    barrier(CLK_LOCAL_MEM_FENCE);
    if (first < last) {
        READ_A(first)
        KEEP_A(first & 1)
        READ_B(first)
        KEEP_B(first & 1)
        FIND_SPOTS(first + 1)
        WGMMA_FENCE
        barrier(CLK_LOCAL_MEM_FENCE);
        READ_A(first + 1)
    }
    for (int t = first; t < last; ++t) {
        const int stage = t & 1;
        const uint at = tiles_at + stage * STAGE;
        const int row_bytes = (WM == 2 ? warpgroup : 0) * 8192, column_bytes = (WM == 2 ? 0 : warpgroup) * 8192;
        const ulong a_upper = WGMMA_ROWS(at + row_bytes), a_lower = WGMMA_ROWS(at + A_PLANE + row_bytes);
        const ulong b_upper = WGMMA_ROWS(at + 2 * A_PLANE + column_bytes);
        const ulong b_lower = WGMMA_ROWS(at + 2 * A_PLANE + B_PLANE + column_bytes);
        WGMMA_BEGIN
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            WGMMA(product, a_lower + WGMMA_STEP(32 * k), b_upper + WGMMA_STEP(32 * k), k == 0, "0");
            WGMMA(product, a_upper + WGMMA_STEP(32 * k), b_lower + WGMMA_STEP(32 * k), 0, "0");
            WGMMA(product, a_upper + WGMMA_STEP(32 * k), b_upper + WGMMA_STEP(32 * k), 0, "0");
        }
        WGMMA_COMMIT
        if (t + 1 < last) {
            KEEP_A(1 - stage)
            READ_B(t + 1)
            FIND_SPOTS(t + 2)
            KEEP_B(1 - stage)
            WGMMA_FENCE
        }
        WGMMA_WAIT(product)
        const int row = (WM == 2 ? warpgroup * 64 : 0) + (warp & 3) * 16 + (lane >> 2);
        const float r0 = unscale_a[stage * BM + row], r1 = unscale_a[stage * BM + row + 8];
        local const float* factors = unscale_b + stage * BN + (WM == 2 ? 0 : warpgroup * 64) + (lane & 3) * 2;
#pragma unroll
        for (int i = 0; i < SUMS / 4; ++i) {
            const float2 f = *(local const float2*)(factors + 8 * i);
            sum[4 * i] = fma(product[4 * i] * r0, f.x, sum[4 * i]);
            sum[4 * i + 1] = fma(product[4 * i + 1] * r0, f.y, sum[4 * i + 1]);
            sum[4 * i + 2] = fma(product[4 * i + 2] * r1, f.x, sum[4 * i + 2]);
            sum[4 * i + 3] = fma(product[4 * i + 3] * r1, f.y, sum[4 * i + 3]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t + 2 < last) READ_A(t + 2)
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
#if TAP_OUTER
#define DWEIGHT(column) \
    (((ulong)m * channels_in + (column) % channels_in) * (KERNEL_H * KERNEL_W) + (column) / channels_in)
#else
#define DWEIGHT(column) ((ulong)m * columns + (column))
#endif
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
