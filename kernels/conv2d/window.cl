// SPDX-License-Identifier: MIT
// conv2d.wgmma_window: a convolution of few input channels, the first of most networks, over plain float images on tensor
// cores. The window of the image under 8 x 8 output pixels is read once, split into halves and multiplied in place.
//
//         64 pixels: 8 x 8           the window: C8 planes of ROWS x COLUMNS chunks of 8 halves
//        +-----------------+           +--+--+--+--+
//     64 |  a warpgroup's  |           |a |ab| b|  |   tap (0, 0) of 8 x 8 pixels begins at a, tap (0, 1) at b: overlapping
//        +-----------------+           +--+--+--+--+   taps are overlapping addresses
//
//   rows     output channels
//   columns  pixels
//   K        chunks of eight channels, within them taps
//
// S x S pixels (S is the stride) count as one of S * S * channels_in channels, filled up to C8 chunks, so that the window of
// a kernel of SIDE_H x SIDE_W of these moves by one. Without a swizzle the matrix instruction takes eight contiguous rows of
// 16 bytes (adjacent pixels), and from its descriptor the distance to the next eight (one row of pixels down) and to the
// next chunk of K (another tap). So nothing is copied for taps that overlap.
//
// Define           meaning                                                                example
// PRODUCTS         3: exact float; 1: upper halves alone (halves.clh)                     3
// S                stride                                                                 2
// SIDE_H, SIDE_W   kernel's size over the stride, rounded up                              4, 4
// C8               chunks of eight channels of S x S pixels                               2
// WORKERS          warpgroups of a work-group                                             4
// Y_KIND           type of y: 0 float, 1 half, 2 bfloat16                                 0
// Y_LAST           1 if y has its channels last; else it is plain, and float              0
// Y_FOURS          with Y_LAST: output channels are a multiple of four, EPILOGUE takes a float4   0
// Y_PAIRS          without Y_LAST: y has an even width                                    1
//
// Work-group: WORKERS warpgroups that share 64 output channels' weights (window_pack.cl), which stay in local memory. Each
// takes windows on its own, so that one multiplies while others read or write. A window has one power of two as its scale.
// Range: windows in dimension 0, by as many work-groups as the device holds; 64s of output channels in dimension 1.
// Local memory: A_BYTES + WORKERS * WINDOW_BYTES.
#include "common/inline.clh"
#include "matrix/round16.clh"
#include "matrix/halves.clh"
#include "matrix/unit.clh"

#define ROWS (7 + SIDE_H)
#define COLUMNS (7 + SIDE_W)
#define CHUNKS (C8 * ROWS * COLUMNS)
#define LOADS ((CHUNKS + 127) / 128)
#define TAPS (SIDE_H * SIDE_W)
#define PAIRS ((C8 * TAPS + 1) / 2)
#define STEPS ((PAIRS + 3) / 4)
#define A_BYTES (STEPS * PLANES * 8192)
#define PLANE (CHUNKS * 16)
// A row of sums on their way to rows of channels, in floats: neighbouring rows in different banks.
#define BM 64
#define BN 64
#define ROW (BN + 8)
#if Y_LAST && BM * ROW * 4 > PLANES * PLANE
#define WINDOW_BYTES (BM * ROW * 4)
#else
#define WINDOW_BYTES (PLANES * PLANE)
#endif
#define Y_TYPE JOIN(STORED_, Y_KIND)

// Byte of tap and chunk number q of a pixel, from the pixel's first.
#define PLACE_OF(q) (((q) / TAPS * ROWS + (q) % TAPS / SIDE_W) * COLUMNS * 16 + (q) % SIDE_W * 16)
// Of an operand without swizzle: bytes between chunks of K, and between eights of rows.
#define WGMMA_EIGHTS(at, k_bytes, row_bytes) \
    ((ulong)(((at) >> 4) & 0x3fff) | (ulong)((k_bytes) >> 4) << 16 | (ulong)((row_bytes) >> 4) << 32)
// Of the pair of chunks 2p and 2p + 1 of a window; the weights of one too many are zeros.
#define WINDOW(at, p)                                                                                   \
    WGMMA_EIGHTS((at) + PLACE_OF(2 * (p)),                                                              \
                 2 * (p) + 1 < C8 * TAPS ? PLACE_OF(2 * (p) + 1) - PLACE_OF(2 * (p)) : 0, COLUMNS * 16)
#define WORKER_BARRIER asm volatile("bar.sync %0, 128;" ::"r"(worker + 1) : "memory");

inline uint warp_max(uint v) {
    uint most;
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(most) : "r"(v));
    return most;
}

// The image that windows are cut from: channel planes of one image, and their number and size.
typedef struct {
    global const float* planes;
    int channels, h, w;
} WindowImage;

// Reads a work-item's chunks of the window whose first pixel is (top, left), zeros outside of the image, to v. Returns the
// bits of the largest magnitude.
INLINE uint window_read(WindowImage x, int top, int left, int id, float* v) {
    uint most = 0;
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
        const uint e = id + 128 * i, chunk = e / (ROWS * COLUMNS), pixel = e % (ROWS * COLUMNS);
        const int row = top + (int)(pixel / COLUMNS) * S, column = left + (int)(pixel % COLUMNS) * S;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const uint channel = chunk * 8 + j, c = channel / (S * S);
            const int x_y = row + (int)(channel / S % S), x_x = column + (int)(channel % S);
            float value = 0;
            if (e < CHUNKS && (int)c < x.channels && (uint)x_y < (uint)x.h && (uint)x_x < (uint)x.w)
                value = x.planes[((int)c * x.h + x_y) * x.w + x_x];
            most = max(most, as_uint(value) & 0x7fffffffu);
            v[i * 8 + j] = value;
        }
    }
    return most;
}

// Writes halves of these chunks, scaled, to the window in local memory.
INLINE void window_write(const float* v, float scale, int id, local uchar* window) {
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
        uint upper[4], lower[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float a = v[i * 8 + 2 * j] * scale, b = v[i * 8 + 2 * j + 1] * scale;
            SPLIT_PAIR(a, b, upper[j], lower[j])
        }
        const int e = id + 128 * i;
        if (e < CHUNKS) {
            *(local uint4*)(window + e * 16) = (uint4)(upper[0], upper[1], upper[2], upper[3]);
#if PLANES == 2
            *(local uint4*)(window + PLANE + e * 16) = (uint4)(lower[0], lower[1], lower[2], lower[3]);
#endif
        }
    }
}

// sum = the products of the weights at a_at and of the window at b_at, both local addresses.
INLINE void window_multiply(uint a_at, uint b_at, float* sum) {
#pragma unroll
    for (int i = 0; i < 32; ++i) sum[i] = 0;
#if PRODUCTS == 3
    // Sums of 64 of K are the tensor core's, the rest is added in float outside of it (it rounds toward zero).
    // Accumulators are set once: written between products, they make the compiler wait for each.
    float product[32];
#pragma unroll
    for (int i = 0; i < 32; ++i) product[i] = 0;
#pragma unroll
    for (int t = 0; t < STEPS; ++t) {
        const uint upper_at = a_at + t * (PLANES * 8192);
        UNIT_BEGIN
        // Small products first: the unit cuts off what is below the sum at every addition.
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if (t * 4 + k < PAIRS) {
                UNIT_64(product, UNIT_ROWS(upper_at + 8192) + UNIT_STEP(32) * k, WINDOW(b_at, t * 4 + k), k == 0, 0, 0);
                UNIT_64(product, UNIT_ROWS(upper_at) + UNIT_STEP(32) * k, WINDOW(b_at + PLANE, t * 4 + k), 0, 0, 0);
            }
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if (t * 4 + k < PAIRS)
                UNIT_64(product, UNIT_ROWS(upper_at) + UNIT_STEP(32) * k, WINDOW(b_at, t * 4 + k), 0, 0, 0);
        }
        UNIT_COMMIT
        UNIT_WAIT_32(product)
#pragma unroll
        for (int i = 0; i < 32; ++i) sum[i] += product[i];
    }
#else
    UNIT_BEGIN
#pragma unroll
    for (int p = 0; p < PAIRS; ++p)
        UNIT_64(sum, UNIT_ROWS(a_at + p / 4 * 8192) + UNIT_STEP(32) * (p % 4), WINDOW(b_at, p), p == 0, 0, 0);
    UNIT_COMMIT
    UNIT_WAIT_32(sum)
#endif
}

kernel __attribute__((reqd_work_group_size(WORKERS * 128, 1, 1))) void window_product(
    global const float* x, ulong x_offset, global const uchar* w, ulong w_offset, global const float* bias,
    ulong bias_offset, global Y_TYPE* y, ulong y_offset, int has_bias, int channels_in, int channels_out, int x_h,
    int x_w, int out_h, int out_w, int pad_h, int pad_w, int tiles_y, int tiles_x, int tiles,
    long planes_at EPILOGUE_PARAMETERS) {
    local uchar weights[A_BYTES] __attribute__((aligned(1024)));
    local uchar windows[WORKERS * WINDOW_BYTES] __attribute__((aligned(1024)));
    local uint largest[WORKERS * 4];
    const int worker = (int)get_local_id(0) >> 7, id = (int)get_local_id(0) & 127, warp = id >> 5, lane = id & 31;
    const int n0 = (int)get_group_id(1) * 64;
    x += x_offset;
    w += w_offset;
    bias += bias_offset;
    y += y_offset;
    global const uchar* from = w + planes_at + (long)get_group_id(1) * A_BYTES;
    for (int i = (int)get_local_id(0) * 16; i < A_BYTES; i += WORKERS * 2048)
        *(local uint4*)(weights + i) = *(global const uint4*)(from + i);
    UNIT_FENCE
    barrier(CLK_LOCAL_MEM_FENCE);

    local uchar* window = windows + worker * WINDOW_BYTES;
    const uint a_at = (uint)weights, b_at = (uint)windows + worker * WINDOW_BYTES;
    for (int tile = (int)get_group_id(0) * WORKERS + worker; tile < tiles; tile += (int)get_num_groups(0) * WORKERS) {
        const int image = tile / (tiles_y * tiles_x), inside = tile - image * (tiles_y * tiles_x);
        const int out_y = inside / tiles_x * 8, out_x = inside % tiles_x * 8;
        const WindowImage plain = {x + (ulong)image * channels_in * x_h * x_w, channels_in, x_h, x_w};
        float v[LOADS * 8];
        uint most = warp_max(window_read(plain, out_y * S - pad_h, out_x * S - pad_w, id, v));
        if (lane == 0) largest[worker * 4 + warp] = most;
        // Of all warps; and nobody works on the window before any more.
        WORKER_BARRIER
#pragma unroll
        for (int i = 0; i < 4; ++i) most = max(most, largest[worker * 4 + i]);
        const float scale = split_scale(most), unscale = split_unscale_cut(most);
        window_write(v, scale, id, window);
        UNIT_FENCE
        WORKER_BARRIER

        float sum[32];
        window_multiply(a_at, b_at, sum);

#if Y_LAST
        // Nobody multiplies any more.
        WORKER_BARRIER
        local float* rows = (local float*)window;
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            const int pixel = i / 4 * 8 + (lane & 3) * 2 + (i & 1), channel = warp * 16 + (lane >> 2) + (i & 2) * 4;
            rows[pixel * ROW + channel] = sum[i] * unscale;
        }
        WORKER_BARRIER
#define ITEMS 128
#define PLACE(row)                                                                              \
    (out_y + (row) / 8 < out_h && out_x + (row) % 8 < out_w                                     \
         ? (image * out_h + out_y + (row) / 8) * out_w + out_x + (row) % 8                      \
         : -1)
#include "matrix/finish_last.clh"
#else
#pragma unroll
        for (int half_ = 0; half_ < 2; ++half_) {
            const int channel = n0 + warp * 16 + (lane >> 2) + 8 * half_, m = min(channel, channels_out - 1);
            const float factor = ((global const float*)w)[m], offset = has_bias ? bias[m] : 0.0f;
            const int column = out_x + (lane & 3) * 2;
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const int row = out_y + i;
                if (channel >= channels_out || row >= out_h || column >= out_w) continue;
                const ulong at = (((ulong)image * channels_out + channel) * out_h + row) * out_w + column;
                float v0 = sum[4 * i + 2 * half_] * unscale * factor + offset;
                float v1 = sum[4 * i + 2 * half_ + 1] * unscale * factor + offset;
                EPILOGUE(v0, at);
#if Y_PAIRS
                EPILOGUE(v1, at + 1);
                if ((y_offset & 1) == 0) {
                    *(global float2*)(y + at) = (float2)(v0, v1);
                } else {
                    y[at] = v0;
                    y[at + 1] = v1;
                }
#else
                y[at] = v0;
                if (column + 1 < out_w) {
                    EPILOGUE(v1, at + 1);
                    y[at + 1] = v1;
                }
#endif
            }
        }
#endif
    }
}
