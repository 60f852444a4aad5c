// SPDX-License-Identifier: MIT
// conv2d_backward_filter.implicit_gemm: dweight as a matrix product, of which both sides are gathered.
//
//          BN (tap, input channel)
//        +---------+           rows     output channels of a group
//     BM | 4x4 ... |           columns  (tap, input channel) of it, channels innermost
//        +---------+           K        output pixels of all images, in parts of `part_pixels` (parts_sum.cl adds them)
//
// Define               meaning                                                            example
// TX, TY, GM, GN, BK   see matrix/float_tile.clh                                          16, 16, 2, 2, 8
// KERNEL_H, KERNEL_W   taps of the kernel                                                 3, 3
// CHANNEL_QUADS        1 if channels of a group are a multiple of 4: a quad's columns share their tap   1
// A_STORED, B_STORED   types of x and of dy (common/storage.clh)                          0, 0
//
// Work-group: one tile, for one part of K. BK successive work-items read BK successive pixels, each of four rows of dy and
// four columns of patches per quad, which go to local memory as float4. Work-groups are numbered by row tile, then column
// tile, then (group, part of K). Part p goes to dweight + p * part_stride. Local memory: see matrix/float_tile.clh.
#include "common/storage.clh"
#define TILE_GAP 4
#include "matrix/float_tile.clh"

#define TAPS (KERNEL_H * KERNEL_W)
#define QUAD_STEP (THREADS / BK)
#define A_QUADS (BM / 4 / QUAD_STEP)
#define B_QUADS (BN / 4 / QUAD_STEP)
#if CHANNEL_QUADS
#define PLACES 1
#else
#define PLACES 4
#endif
#define NOWHERE (1 << 30)

// Statements of the kernel, on its locals.

#if CHANNEL_QUADS
#define READ_PATCHES(q)                                                                                        \
    {                                                                                                          \
        const int iy = base_y + tap_y[q][0], ix = base_x + tap_x[q][0];                                        \
        const int inside = live && (uint)iy < (uint)h && (uint)ix < (uint)w;                                   \
        global const A_T* from = x_from + place[q][0];                                                         \
        b_next[q] = (float4)(0.0f);                                                                            \
        if (inside)                                                                                            \
            b_next[q] = (float4)(A_AT(from, 0), A_AT(from, plane), A_AT(from, 2 * (ulong)plane),               \
                                 A_AT(from, 3 * (ulong)plane));                                                \
    }
#else
#define READ_PATCH(q, e)                                                                                       \
    (live && (uint)(base_y + tap_y[q][e]) < (uint)h && (uint)(base_x + tap_x[q][e]) < (uint)w                  \
         ? A_AT(x_from, place[q][e])                                                                           \
         : 0.0f)
#define READ_PATCHES(q) \
    b_next[q] = (float4)(READ_PATCH(q, 0), READ_PATCH(q, 1), READ_PATCH(q, 2), READ_PATCH(q, 3));
#endif
#define FETCH                                                                                                  \
    {                                                                                                          \
        const int live = pixel < last;                                                                         \
        global const B_T* dy_from =                                                                            \
            dy + (ulong)image * groups * group_out * out_plane + oy * ow + ox;                                 \
        _Pragma("unroll") for (int q = 0; q < A_QUADS; ++q) {                                                  \
            const int row = m0 + (quad + q * QUAD_STEP) * 4;                                                   \
            a_next[q] = (float4)(READ_ROW(0), READ_ROW(1), READ_ROW(2), READ_ROW(3));                          \
        }                                                                                                      \
        const int base_y = oy * sh, base_x = ox * sw;                                                          \
        global const A_T* x_from = x + (ulong)image * groups * group_in * plane + base_y * w + base_x;         \
        _Pragma("unroll") for (int q = 0; q < B_QUADS; ++q) READ_PATCHES(q)                                    \
        pixel += BK;                                                                                           \
        ox += step_x;                                                                                          \
        if (ox >= ow) {                                                                                        \
            ox -= ow;                                                                                          \
            ++oy;                                                                                              \
        }                                                                                                      \
        oy += step_y;                                                                                          \
        if (oy >= oh) {                                                                                        \
            oy -= oh;                                                                                          \
            ++image;                                                                                           \
        }                                                                                                      \
        image += step_image;                                                                                   \
    }
#define KEEP(buffer)                                                                                           \
    _Pragma("unroll") for (int q = 0; q < A_QUADS; ++q) *                                                      \
        (local float4*)(a_tile + ((buffer)*BK + slot) * LDA + (quad + q * QUAD_STEP) * 4) = a_next[q];         \
    _Pragma("unroll") for (int q = 0; q < B_QUADS; ++q) *                                                      \
        (local float4*)(b_tile + ((buffer)*BK + slot) * LDB + (quad + q * QUAD_STEP) * 4) = b_next[q];
#define STORE(lane, e)                                                                                         \
    if (column0 + e < columns) {                                                                               \
        const int tap = (column0 + e) / group_in, c = column0 + e - tap * group_in;                            \
        _Pragma("unroll") for (int i = 0; i < 4 * GM; ++i) {                                                   \
            const int m = m0 + TILE_ROW(i);                                                                    \
            if (m < group_out) {                                                                               \
                const ulong at = (((ulong)g * group_out + m) * group_in + c) * TAPS + tap;                     \
                float v = sum[i][j].lane;                                                                      \
                EPILOGUE(v, at);                                                                               \
                dweight[at] = v;                                                                               \
            }                                                                                                  \
        }                                                                                                      \
    }

kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void implicit_gemm_filter(
    global const A_T* x, ulong x_offset, global const B_T* dy, ulong dy_offset, global float* dweight,
    ulong dweight_offset, int pixels, int part_pixels, int groups, int group_in, int group_out, int h, int w, int oh,
    int ow, int sh, int sw, int pt, int pl, int dh, int dw, int tiles_m, int tiles_n,
    long part_stride EPILOGUE_PARAMETERS) {
    local float a_tile[2 * BK * LDA] __attribute__((aligned(16)));
    local float b_tile[2 * BK * LDB] __attribute__((aligned(16)));
    const int id = get_local_id(0), tx = tile_x(id), ty = tile_y(id);
    const int m0 = (int)get_group_id(0) % tiles_m * BM;
    const int n0 = (int)get_group_id(0) / tiles_m % tiles_n * BN;
    const int z = (int)get_group_id(0) / tiles_m / tiles_n, g = z % groups, part = z / groups;
    const int plane = h * w, out_plane = oh * ow;
    const int columns = TAPS * group_in;
    const int first = part * part_pixels, last = min(pixels - first, part_pixels) + first;
    const int slot = id % BK, quad = id / BK;

    // This work-item's pixel; it moves by BK a step.
    int pixel = first + slot;
    int image = pixel / out_plane;
    int oy = (pixel - image * out_plane) / ow, ox = pixel - image * out_plane - oy * ow;
    const int step_image = BK / out_plane, step_y = BK % out_plane / ow, step_x = BK % out_plane % ow;

    // Its columns of patches: tap's distance in the image, and place of (channel, tap).
    int tap_y[B_QUADS][PLACES], tap_x[B_QUADS][PLACES], place[B_QUADS][PLACES];
#pragma unroll
    for (int q = 0; q < B_QUADS; ++q)
#pragma unroll
        for (int e = 0; e < PLACES; ++e) {
            const int column = n0 + (quad + q * QUAD_STEP) * 4 + e;
            const int tap = column / group_in, c = column - tap * group_in;
            tap_y[q][e] = column < columns ? tap / KERNEL_W * dh - pt : NOWHERE;
            tap_x[q][e] = tap % KERNEL_W * dw - pl;
            place[q][e] = column < columns ? c * plane + tap_y[q][e] * w + tap_x[q][e] : 0;
        }
    x += x_offset + (ulong)g * group_in * plane;
    dy += dy_offset + (ulong)g * group_out * out_plane;
    float4 a_next[A_QUADS], b_next[B_QUADS];

#define READ_ROW(e) (live && row + e < group_out ? B_AT(dy_from, (ulong)(row + e) * out_plane) : 0.0f)

    float4 sum[4 * GM][GN];
    TILE_CLEAR
    FETCH
    KEEP(0)
    barrier(CLK_LOCAL_MEM_FENCE);
    int buffer = 0;
    for (int at = first; at < last; at += BK) {
        const int more = at + BK < last;
        if (more) FETCH
        TILE_MULTIPLY(buffer)
        buffer ^= 1;
        if (more) {
            KEEP(buffer)
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    dweight += dweight_offset + (ulong)part * part_stride;
#pragma unroll
    for (int j = 0; j < GN; ++j) {
        const int column0 = n0 + TILE_COLUMN(j);
        STORE(x, 0)
        STORE(y, 1)
        STORE(z, 2)
        STORE(w, 3)
    }
}
