// SPDX-License-Identifier: MIT
// Splits images of at most four channels into halves, four channels of a pixel beside each other, as conv2d/planes.cl reads
// them with NARROW. Images are padded by zeros to h x w.
//
//     plain image                       planes, in bytes:
//       c0 [ x_h x x_w ]   ---->          upper halves   [ image ][ h ][ w ][ c0 c1 c2 c3 ]
//       c1 [ x_h x x_w ]                  lower halves   likewise, with PRODUCTS 3
//       ...                               unscale        a float per image, which has one power of two as its scale
//                                         largest        PARTS numbers per image: bits of its parts' largest magnitudes
//
// Define     meaning                                                                  example
// PRODUCTS   3: upper and lower halves; 1: upper halves alone (matrix/halves.clh)     3
//
// narrow_largest: a work-group finds the largest magnitude of one part (dimension 0) of an image (dimension 1).
// Local memory: 1 KiB.
// narrow_pack: a work-item packs one pixel (dimension 0) of an image (dimension 1). Local memory: none.
#include "matrix/halves.clh"

#define PARTS 16
#define ITEMS 256

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void narrow_largest(
    global const float* x, ulong x_offset, global uint* largest, ulong largest_offset, int count) {
    local uint most[ITEMS];
    const int id = get_local_id(0), part = get_group_id(0), image = get_group_id(1);
    x += x_offset + (ulong)image * count;
    uint m = 0;
    for (int i = part * ITEMS + id; i < count; i += PARTS * ITEMS) m = max(m, as_uint(x[i]) & 0x7fffffffu);
    most[id] = m;
    for (int half_ = ITEMS / 2; half_ > 0; half_ /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < half_) most[id] = max(most[id], most[id + half_]);
    }
    if (id == 0) largest[largest_offset + image * PARTS + part] = most[0];
}

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void narrow_pack(
    global const float* x, ulong x_offset, global uchar* planes, ulong planes_offset, int channels, int x_h, int x_w,
    int pad_h, int pad_w, int h, int w) {
    const int place = get_group_id(0) * ITEMS + get_local_id(0), image = get_group_id(1);
    if (place >= h * w) return;
    const long pixels = (long)get_num_groups(1) * h * w;
    planes += planes_offset;
    global float* unscale = (global float*)(planes + pixels * (8 * PLANES));
    global const uint* largest = (global const uint*)(unscale + get_num_groups(1)) + image * PARTS;
    uint most = 0;
    for (int i = 0; i < PARTS; ++i) most = max(most, largest[i]);
    const float scale = split_scale(most);
    const int row = place / w - pad_h, column = place - place / w * w - pad_w;
    float v[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        v[c] = 0;
        if (c < channels && row >= 0 && row < x_h && column >= 0 && column < x_w)
            v[c] = x[x_offset + ((ulong)(image * channels + c) * x_h + row) * x_w + column] * scale;
    }
    uint upper[2], lower[2];
    SPLIT_PAIR(v[0], v[1], upper[0], lower[0])
    SPLIT_PAIR(v[2], v[3], upper[1], lower[1])
    global uint* to = (global uint*)planes + ((long)image * h * w + place) * 2;
    *(global uint2*)to = (uint2)(upper[0], upper[1]);
#if PLANES == 2
    *(global uint2*)(to + pixels * 2) = (uint2)(lower[0], lower[1]);
#endif
    if (place == 0) unscale[image] = split_unscale_cut(most);
}
