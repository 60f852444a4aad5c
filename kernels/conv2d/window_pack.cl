// SPDX-License-Identifier: MIT
// Packs weights as halves for the tiles of a matrix unit, as conv2d/window.cl reads them.
//
//     packed, in bytes:
//       unscale   [ a float per row ]
//       planes    [ rows 0 to 63: step 0: upper halves, lower halves | step 1: ... ][ rows 64 to 127: ... ] ...
//
//     a plane of 64 rows and one step:    64 of K, 128 bytes
//                                        +------------------+
//                                64 rows | 8 chunks of 16 B |   chunk c of row r is at c ^ r % 8 (matrix/unit.clh)
//                                        +------------------+
//
// Rows are output channels, rounded up to 64s. K is C8 chunks of eight channels, and within a chunk SIDE_H x SIDE_W taps, of
// images whose pixels are S x S of the plain ones: channel (c * S + y) * S + x is pixel (y, x) of the S x S of channel c.
// What a kernel of KERNEL_H x KERNEL_W lacks is zero.
//
// Define               meaning                                                                  example
// PRODUCTS             3: upper and lower halves; 1: upper halves alone (matrix/halves.clh)     3
// S                    stride                                                                   2
// SIDE_H, SIDE_W       kernel's size over the stride, rounded up                                4, 4
// C8                   chunks of eight channels of S x S pixels                                 2
// KERNEL_H, KERNEL_W   taps of the plain kernel                                                 7, 7
//
// Work-group: one row. A work-item reads every 256th weight and writes every 256th chunk. Local memory: 1 KiB.
#include "matrix/halves.clh"

#define ITEMS 256
#define TAPS (SIDE_H * SIDE_W)
#define STEPS ((C8 * TAPS + 7) / 8)

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void window_pack(
    global const float* weight, ulong weight_offset, global uchar* packed, ulong packed_offset, int channels_in,
    int channels_out, long planes_at) {
    local uint largest[ITEMS];
    const int id = get_local_id(0), row = get_group_id(0);
    packed += packed_offset;
    weight += weight_offset + (ulong)row * channels_in * (KERNEL_H * KERNEL_W);
    const int count = row < channels_out ? channels_in * KERNEL_H * KERNEL_W : 0;
    uint most = 0;
    for (int i = id; i < count; i += ITEMS) most = max(most, as_uint(weight[i]) & 0x7fffffffu);
    largest[id] = most;
    for (int half_ = ITEMS / 2; half_ > 0; half_ /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < half_) largest[id] = max(largest[id], largest[id + half_]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    most = largest[0];
    const float scale = split_scale(most);
    if (id == 0) ((global float*)packed)[row] = split_unscale(most);
    global uchar* planes = packed + planes_at + (long)(row / 64) * (STEPS * PLANES * 8192) + row % 64 * 128;
    for (int chunk = id; chunk < STEPS * 8; chunk += ITEMS) {
        uint upper[4], lower[4];
        float v[8];
        const int tap = chunk % TAPS;
        for (int j = 0; j < 8; ++j) {
            const int channel = chunk / TAPS * 8 + j, c = channel / (S * S);
            const int y = tap / SIDE_W * S + channel / S % S, x = tap % SIDE_W * S + channel % S;
            v[j] = 0;
            if (chunk < C8 * TAPS && c < channels_in && y < KERNEL_H && x < KERNEL_W && count > 0)
                v[j] = weight[(c * KERNEL_H + y) * KERNEL_W + x] * scale;
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) SPLIT_PAIR(v[2 * j], v[2 * j + 1], upper[j], lower[j])
        global uchar* to = planes + (long)(chunk / 8) * (PLANES * 8192) + ((chunk % 8 ^ (row & 7)) << 4);
        *(global uint4*)to = (uint4)(upper[0], upper[1], upper[2], upper[3]);
#if PLANES == 2
        *(global uint4*)(to + 8192) = (uint4)(lower[0], lower[1], lower[2], lower[3]);
#endif
    }
}
