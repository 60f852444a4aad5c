// SPDX-License-Identifier: MIT
// Packs weights in 16 bits for the tiles of a matrix unit, as matrix/stored16.cl and conv2d/stored16_first.cl read them.
//
//     packed, in bytes:   [ unscale: a float per row ][ rows 0 to 63: step 0 | step 1 | ... ][ rows 64 to 127: ... ] ...
//
//     a block of 64 rows and one step:    64 of K, 128 bytes
//                                        +------------------+
//                              64 rows   | 8 chunks of 16 B |   chunk c of row r is at c ^ r % 8 (unit.clh)
//                                        +------------------+
//
// Rows are output channels, rounded up to blocks of 64. K goes by blocks of `block` input channels, filled up with zeros, and
// within a block by taps, up to `depth`. A row is multiplied by the power of two that brings its largest magnitude to between
// 2^14 and 2^15, so that weights of any magnitude keep their bits; `unscale` undoes that.
//
// Define   meaning                                                                            example
// KIND     type of the packed weights: 1 half, 2 bfloat16                                     1
// ROOM     0, or a number of at least `depth`: the row's weights then stay in local memory
//          between the two passes over them                                                   4608
//
// Work-group: one row. A work-item reads every 256th weight and writes every 256th chunk.
// Local memory: 1 KiB and ROOM floats.
#include "matrix/round16.clh"

#define ITEMS 256
#define PACK JOIN(PACK_, KIND)

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void stored16_pack(
    global const float* weight, ulong weight_offset, global uchar* packed, ulong packed_offset, int group_out,
    int group_in, int depth, int block, int steps, int kernel_h, int kernel_w, int weight_w, int h0, int h_step, int w0,
    int w_step, long weight_out, long weight_in, long blocks_at) {
    local uint largest[ITEMS];
#if ROOM
    local float row_[ROOM];
#endif
    const int id = get_local_id(0), row = get_group_id(0), taps = kernel_h * kernel_w;
    packed += packed_offset;
    const int live = row < group_out;
    weight += weight_offset + (live ? row * weight_out : 0);
#define WEIGHT(k, v)                                                                                       \
    float v = 0;                                                                                           \
    {                                                                                                      \
        const int tap_ = (k) / block % taps, c_ = (k) / block / taps * block + (k) % block;                \
        const int ky_ = tap_ / kernel_w, kx_ = tap_ - ky_ * kernel_w;                                      \
        if (live && (k) < depth && c_ < group_in) v = weight[c_ * weight_in + (h0 + ky_ * h_step) * weight_w + w0 + kx_ * w_step]; \
    }
#if ROOM
#define KEEP(k, v) row_[k] = v;
#define KEPT(k, v) const float v = (k) < depth ? row_[k] : 0.0f;
#else
#define KEEP(k, v)
#define KEPT WEIGHT
#endif
    uint most = 0;
    for (int k = id; k < depth; k += ITEMS) {
        WEIGHT(k, v)
        KEEP(k, v)
        most = max(most, as_uint(v) & 0x7fffffffu);
    }
    largest[id] = most;
    for (int half_ = ITEMS / 2; half_ > 0; half_ /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < half_) largest[id] = max(largest[id], largest[id + half_]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Rows of zeros and of subnormal numbers count as 2^-112.
    const uint exponent = max(largest[0] >> 23, 15u);
    const float scale = as_float((268u - exponent) << 23);
    if (id == 0) ((global float*)packed)[row] = as_float((exponent - 14u) << 23);
    global uchar* to = packed + blocks_at + (long)(row / 64) * steps * 8192 + row % 64 * 128;
    for (int chunk = id; chunk < steps * 8; chunk += ITEMS) {
        uint pairs[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            KEPT(chunk * 8 + 2 * i, a)
            KEPT(chunk * 8 + 2 * i + 1, b)
            pairs[i] = PACK(a * scale, b * scale);
        }
        *(global uint4*)(to + (long)(chunk / 8) * 8192 + ((chunk % 8 ^ (row & 7)) << 4)) =
            (uint4)(pairs[0], pairs[1], pairs[2], pairs[3]);
    }
}
