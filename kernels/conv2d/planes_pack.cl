// SPDX-License-Identifier: MIT
// Splits images into halves, channels of a pixel beside each other, as conv2d/planes.cl reads them.
//
//     plain image: 64 channels x 32 pixels              planes, in bytes:
//          +--------------------+                         upper halves   [ block ][ pixel of all images ][ 64 channels ]
//       64 |  a work-group's    |  -- transposed -->      lower halves   likewise, with PRODUCTS 3
//          +--------------------+                         unscale        a float for each block and pixel
//
// A block is 64 channels; behind the last channel there are zeros. Each pixel of a block has a power of two as its scale.
//
// Define     meaning                                                                  example
// PRODUCTS   3: upper and lower halves; 1: upper halves alone (matrix/halves.clh)     3
//
// Work-group: 64 channels (dimension 1) of 32 pixels (dimension 0). A work-item reads eight channels of a pixel, and then
// writes eight channels that follow each other. Local memory: 64 * 33 floats.
#include "matrix/halves.clh"

#define PIXELS 32

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void planes_pack(
    global const float* x, ulong x_offset, global uchar* planes, ulong planes_offset, int channels, int plane,
    int pixels) {
    local float tile[64 * (PIXELS + 1)];
    const int id = get_local_id(0), block = get_group_id(1), first = get_group_id(0) * PIXELS;
    x += x_offset;
    planes += planes_offset;
    {
        const int pixel = first + (id & 31), image = pixel / plane;
        const int channel = block * 64 + (id >> 5);
        global const float* from = x + ((long)image * channels + channel) * plane + (pixel - image * plane);
#pragma unroll
        for (int i = 0; i < 8; ++i)
            tile[((id >> 5) + 8 * i) * (PIXELS + 1) + (id & 31)] =
                pixel < pixels && channel + 8 * i < channels ? from[(long)(8 * i) * plane] : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // Eight work-items a pixel, eight channels each.
    const int chunk = id & 7, pixel = first + (id >> 3);
    float v[8];
    uint most = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        v[i] = tile[(chunk * 8 + i) * (PIXELS + 1) + (id >> 3)];
        most = max(most, as_uint(v[i]) & 0x7fffffffu);
    }
#pragma unroll
    for (int i = 1; i < 8; i *= 2) {
        uint other;
        SHUFFLE_XOR(other, most, i)
        most = max(most, other);
    }
    if (pixel >= pixels) return;
    const float scale = split_scale(most);
    uint upper[4], lower[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float a = v[2 * i] * scale, b = v[2 * i + 1] * scale;
        SPLIT_PAIR(a, b, upper[i], lower[i])
    }
    const long row = (long)block * pixels + pixel, rows = (long)get_num_groups(1) * pixels;
    global uchar* to = planes + row * 128 + chunk * 16;
    *(global uint4*)to = (uint4)(upper[0], upper[1], upper[2], upper[3]);
#if PLANES == 2
    *(global uint4*)(to + rows * 128) = (uint4)(lower[0], lower[1], lower[2], lower[3]);
#endif
    if (chunk == 0) ((global float*)(planes + rows * (128 * PLANES)))[row] = split_unscale_cut(most);
}
