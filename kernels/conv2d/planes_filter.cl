// SPDX-License-Identifier: MIT
// conv2d_backward_filter.wgmma_planes (mma_planes): what stands around stored16_filter.cl, so that it computes the filter
// gradient of float images in tf32. Each channel has one power of two as its scale, over all images, which brings its largest
// magnitude to between 2^14 and 2^15: what is within 2^-28 of that keeps 11 bits, as TF32 does (halves.clh).
//
//     plain images            halves                              parts              dweight
//     [ n ][ c ][ h, w ]  ->  [ n ][ h, w ][ c ], scaled   ->     of their product  ->   added and unscaled
//          \                      ^
//           largest [ c ][ PARTS ]: bits of the largest magnitudes of the images' parts
//
// Define   meaning                                                    example
// PARTS    parts of the images, each searched for its largest value   16
// and the epilogue (src/engine/epilogue.hpp).
//
// filter_largest: a work-group finds the largest finite magnitude of a part (dimension 0) of a channel (dimension 1).
// filter_halves: 64 channels (dimension 1) of 32 pixels (dimension 0). A work-item reads eight channels of a pixel, and then writes
// eight channels that follow each other. Local memory: 64 * 33 floats and 64 more.
// filter_sum: 32 elements, eight work-items for each. Local memory: 1 KiB.
#define PRODUCTS 1
#include "conv2d/filter_parts.clh"
#include "matrix/halves.clh"

#define ITEMS 256
#define PIXELS 32

INLINE uint largest_of(global const uint* largest, int channel) {
    uint most = 0;
    for (int i = 0; i < PARTS; ++i) most = max(most, largest[channel * PARTS + i]);
    return most;
}

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void filter_largest(global const float* x, ulong x_offset,
                                                                              global uint* largest, ulong largest_offset,
                                                                              int images, int channels, int plane) {
    local uint most[ITEMS];
    const int id = get_local_id(0), part = get_group_id(0), channel = get_group_id(1);
    uint m = 0;
    for (int image = part; image < images; image += PARTS) {
        global const float* const from = x + x_offset + ((ulong)image * channels + channel) * plane;
#pragma unroll 4
        for (int i = id; i < plane; i += ITEMS) {
            const uint bits = as_uint(from[i]) & 0x7fffffffu;
            m = max(m, bits < 0x7f800000u ? bits : 0);
        }
    }
    most[id] = m;
    for (int half_ = ITEMS / 2; half_ > 0; half_ /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < half_) most[id] = max(most[id], most[id + half_]);
    }
    if (id == 0) largest[largest_offset + channel * PARTS + part] = most[0];
}

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void filter_halves(
    global const float* x, ulong x_offset, global const uint* largest, ulong largest_offset, global ushort* halves,
    ulong halves_offset, int channels, int plane, int pixels) {
    local float tile[64 * (PIXELS + 1)], scales[64];
    const int id = get_local_id(0), channel0 = (int)get_group_id(1) * 64, first = (int)get_group_id(0) * PIXELS;
    x += x_offset;
    if (id < 64 && channel0 + id < channels) scales[id] = split_scale(largest_of(largest + largest_offset, channel0 + id));
    {
        const int pixel = first + (id & 31), image = pixel / plane, channel = channel0 + (id >> 5);
        global const float* from = x + ((long)image * channels + channel) * plane + (pixel - image * plane);
#pragma unroll
        for (int i = 0; i < 8; ++i)
            tile[((id >> 5) + 8 * i) * (PIXELS + 1) + (id & 31)] =
                pixel < pixels && channel + 8 * i < channels ? from[(long)(8 * i) * plane] : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Eight work-items a pixel, eight channels each.
    const int chunk = (id & 7) * 8, pixel = first + (id >> 3);
    if (pixel >= pixels || channel0 + chunk >= channels) return;
    uint pairs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int c = chunk + 2 * i;
        pairs[i] = split_pack(tile[c * (PIXELS + 1) + (id >> 3)] * scales[c],
                              tile[(c + 1) * (PIXELS + 1) + (id >> 3)] * scales[c + 1]);
    }
    *(global uint4*)(halves + halves_offset + (long)pixel * channels + channel0 + chunk) =
        (uint4)(pairs[0], pairs[1], pairs[2], pairs[3]);
}

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void filter_sum(
    global const float* parts, ulong parts_offset, global const uint* x_largest, ulong x_largest_offset,
    global const uint* dy_largest, ulong dy_largest_offset, global float* dweight, ulong dweight_offset, int count, int splits,
    int taps, int channels EPILOGUE_PARAMETERS) {
    local float sums[ITEMS];
    const int id = get_local_id(0), at = (int)get_group_id(0) * 32 + (id & 31);
    float sum = sum_of_parts(parts + parts_offset, sums, at, count, splits, taps, channels);
    if (id >= 32 || at >= count) return;
    const int row = at / taps, o = row / channels;
    // One after the other: the product of both may be out of range.
    sum = sum * split_unscale(largest_of(x_largest + x_largest_offset, row - o * channels)) *
          split_unscale(largest_of(dy_largest + dy_largest_offset, o));
    EPILOGUE(sum, at);
    dweight[dweight_offset + at] = sum;
}
