// SPDX-License-Identifier: MIT
// Packs weights as halves for the tiles of a matrix unit, as conv2d/split.cl and conv2d/planes.cl read them.
//
//     packed, in bytes:
//       unscale   [ a float per row ]
//       table     [ two ints per k: distance in the image, bits of a pixel's mask that must be set (y; x in the second byte) ]
//       planes    [ tile 0: step 0: upper halves, lower halves | step 1: ... ][ tile 1: ... ] ...
//
//     a plane of a tile and one step:    64 of K, 128 bytes
//                                       +------------------+
//                           `tile` rows | 8 chunks of 16 B |   chunk c of row r is at c ^ r % 8 (matrix/unit.clh)
//                                       +------------------+
//
// Rows are output channels, rounded up to tiles of `tile` rows. K goes by blocks of `block` input channels, and within a
// block by taps; it is rounded up to steps of 64. Weights of taps beyond live_h and live_w are zeros.
//
// Define     meaning                                                                  example
// PRODUCTS   3: upper and lower halves; 1: upper halves alone (matrix/halves.clh)     3
//
// Work-group: one row, or, behind the rows, 256 entries of the table. A work-item reads every 256th weight of the row and
// writes every 256th chunk. Local memory: 1 KiB.
#include "matrix/halves.clh"

#define ITEMS 256

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void split_weights_pack(
    global const float* weight, ulong weight_offset, global uchar* packed, ulong packed_offset, int rows,
    int group_out, int group_in, int depth, int block, int steps, int tile, int kernel_h, int kernel_w, int live_h,
    int live_w, int weight_w, int h0, int h_step,
    int w0, int w_step, long weight_out, long weight_in, int plane, int row_pitch, int dilate_h, int dilate_w,
    long table_at, long planes_at) {
    local uint largest[ITEMS];
    const int id = get_local_id(0), group = get_group_id(0), taps = kernel_h * kernel_w;
    packed += packed_offset;
#define PLACE(k)                                                                       \
    const int tap = (k) / block % taps, c = (k) / block / taps * block + (k) % block;
    if (group >= rows) {
        const int k = (group - rows) * ITEMS + id;
        if (k >= steps * 64) return;
        int2 entry = (int2)(0, 15 | 31 << 8);
        if (k < depth) {
            PLACE(k)
            const int ky = tap / kernel_w, kx = tap - ky * kernel_w;
            entry = (int2)(c * plane + ky * dilate_h * row_pitch + kx * dilate_w, ky | (16 + kx) << 8);
        }
        ((global int2*)(packed + table_at))[k] = entry;
        return;
    }
    const int live = group < group_out;
    weight += weight_offset + (live ? group * weight_out : 0);
    uint most = 0;
#define WEIGHT(k, v)                                                                              \
    float v = 0;                                                                                  \
    if (live && (k) < depth) {                                                                    \
        PLACE(k)                                                                                  \
        const int ky = tap / kernel_w, kx = tap - ky * kernel_w;                                  \
        if (c < group_in && ky < live_h && kx < live_w)                                           \
            v = weight[c * weight_in + (h0 + ky * h_step) * weight_w + w0 + kx * w_step]; \
    }
    for (int k = id; k < depth; k += ITEMS) {
        WEIGHT(k, v)
        most = max(most, as_uint(v) & 0x7fffffffu);
    }
    largest[id] = most;
    for (int half_ = ITEMS / 2; half_ > 0; half_ /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < half_) largest[id] = max(largest[id], largest[id + half_]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    most = largest[0];
    const float scale = split_scale(most);
    if (id == 0) ((global float*)packed)[group] = split_unscale(most);
    const int row = group % tile;
    global uchar* planes = packed + planes_at + (long)(group / tile) * steps * tile * (PLANES * 128);
    for (int chunk = id; chunk < steps * 8; chunk += ITEMS) {
        uint upper[4], lower[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            WEIGHT(chunk * 8 + 2 * i, a)
            WEIGHT(chunk * 8 + 2 * i + 1, b)
            a *= scale;
            b *= scale;
            SPLIT_PAIR(a, b, upper[i], lower[i])
        }
        global uchar* to = planes + (long)(chunk / 8) * tile * (PLANES * 128) + row * 128 + ((chunk % 8 ^ (row & 7)) << 4);
        *(global uint4*)to = (uint4)(upper[0], upper[1], upper[2], upper[3]);
#if PLANES == 2
        *(global uint4*)(to + tile * 128) = (uint4)(lower[0], lower[1], lower[2], lower[3]);
#endif
    }
}
