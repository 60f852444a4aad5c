// SPDX-License-Identifier: MIT
// Converts an image tensor between plain (NCHW), channels_last (NHWC) and blocked (NCHWbc) memory. Elements are copied
// as raw bits. On each side, channel c of pixel p of image n is at element
//   n*image + (c / block)*block_step + (c % block)*lane_step + p*pixel_step
// where block is the number of channels if the layout has no blocks.
//
//   reorder_rows    a work-item moves BLOCK channels of up to `segment` pixels (CPUs)
//   reorder_tiles   a work-group moves a tile through local memory (GPUs); see below
//
// Defines:
//   name              meaning                                                                  example
//   T                 an unsigned type of the element's size                                   uint
//   X_LANE, X_PIXEL   steps of a channel and of a pixel in x; a literal 1 if they are 1        x_lane, 1
//   Y_LANE, Y_PIXEL   the same in y                                                            1, y_pixel
// of reorder_rows:
//   BLOCK             channels that have equal steps on both sides: 8 or 16                    16
// of reorder_tiles:
//   CHANNELS, PIXELS  size of the tile                                                         32, 128
//   PITCH             elements from one channel of the tile to the next, chosen so that the    129
//                     work-items of a warp use different banks of local memory in both directions
//   GROUP             work-items of a work-group                                               256
//   X_ALONG, Y_ALONG  1: that side is contiguous along pixels, 0: along channels               1, 0
//   OFFSET_T          type of offsets within a tile: uint, or ulong for very large planes      uint
//
// Local memory: reorder_tiles uses CHANNELS * PITCH elements, reorder_rows none.
#include "common/inline.clh"

#ifdef BLOCK
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void reorder_rows(global const T* x, ulong x_offset, global T* y, ulong y_offset, int channels, int y_channels,
                  int pixels, int segment, int segments, int blocks, int x_block, int y_block, long x_image,
                  long y_image, long x_block_step, long y_block_step, long x_lane, long y_lane, long x_pixel,
                  long y_pixel)
{
    const int id = get_global_id(0);
    const int c0 = id / segments % blocks * BLOCK;
    const long n = id / segments / blocks;
    const int p0 = id % segments * segment, p1 = min(p0 + segment, pixels);
    global const T* from = x + x_offset + n * x_image + c0 / x_block * x_block_step +
                           c0 % x_block * (X_LANE) + p0 * (X_PIXEL);
    global T* to = y + y_offset + n * y_image + c0 / y_block * y_block_step + c0 % y_block * (Y_LANE) +
                   p0 * (Y_PIXEL);
    if (c0 + BLOCK <= channels) {
        for (int p = p0; p < p1; p++, from += X_PIXEL, to += Y_PIXEL) {
#pragma unroll
            for (int l = 0; l < BLOCK; ++l) to[l * (ulong)(Y_LANE)] = from[l * (ulong)(X_LANE)];
        }
        return;
    }
    const int full = min(max(channels - c0, 0), BLOCK), all = min(y_channels - c0, BLOCK);
    for (int p = p0; p < p1; p++, from += X_PIXEL, to += Y_PIXEL) {
        for (int l = 0; l < full; l++) to[l * (Y_LANE)] = from[l * (X_LANE)];
        for (int l = full; l < all; l++) to[l * (Y_LANE)] = 0;
    }
}
#else
// A work-group moves CHANNELS x PIXELS elements of an image through local memory. On each side, neighbouring work-items
// access neighbours in the dimension in which that side is contiguous, so both sides are accessed in whole cache lines.
// A plane counts as one run of `pixels` elements, whatever the width of its rows.
//
//                 PIXELS (x: plain)                                CHANNELS (y: channels_last)
//               +-----------------+                              +----------+
//      CHANNELS | 0 1 2 3 ..      |  -> local tile, rows of      | 0 1 2 .. |  PIXELS
//               |                 |     PITCH elements        -> |          |
//               +-----------------+                              +----------+
//
// The channels of a tile have equal steps on each side, because CHANNELS divides the block sizes of both.
#define ELEMENTS (CHANNELS * PIXELS)
#define STEPS ((ELEMENTS + GROUP - 1) / GROUP)
// Channel and pixel of element e of the tile, on a side that is contiguous along pixels or not.
INLINE int channel_of(int along, int e) {
    return along ? e / PIXELS : e % CHANNELS;
}
INLINE int pixel_of(int along, int e) {
    return along ? e % PIXELS : e / CHANNELS;
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void reorder_tiles(global const T* x, ulong x_offset, global T* y, ulong y_offset, int channels, int y_channels,
                   int pixels, int channel_tiles, int x_block, int y_block, long x_image, long y_image,
                   long x_block_step, long y_block_step, long x_lane, long y_lane, long x_pixel, long y_pixel)
{
    local T tile[CHANNELS * PITCH];
    const int item = get_local_id(0), id = get_group_id(0);
    const int c0 = id % channel_tiles * CHANNELS, p0 = id / channel_tiles * PIXELS;
    const long n = get_group_id(1);
    x += x_offset + n * x_image + c0 / x_block * x_block_step + c0 % x_block * (X_LANE) + p0 * (X_PIXEL);
    y += y_offset + n * y_image + c0 / y_block * y_block_step + c0 % y_block * (Y_LANE) + p0 * (Y_PIXEL);
    const int tile_pixels = min(pixels - p0, PIXELS);
    const int x_channels = min(channels - c0, CHANNELS), tile_channels = min(y_channels - c0, CHANNELS);
    // All reads are issued before the first value is stored.
    T values[STEPS];
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int e = s * GROUP + item, c = channel_of(X_ALONG, e), p = pixel_of(X_ALONG, e);
        values[s] = 0;
        if (c < x_channels && p < tile_pixels) values[s] = x[c * (OFFSET_T)(X_LANE) + p * (OFFSET_T)(X_PIXEL)];
    }
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int e = s * GROUP + item;
        if (ELEMENTS % GROUP == 0 || e < ELEMENTS) tile[channel_of(X_ALONG, e) * PITCH + pixel_of(X_ALONG, e)] = values[s];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int e = s * GROUP + item, c = channel_of(Y_ALONG, e), p = pixel_of(Y_ALONG, e);
        if (c < tile_channels && p < tile_pixels)
            y[c * (OFFSET_T)(Y_LANE) + p * (OFFSET_T)(Y_PIXEL)] = tile[c * PITCH + p];
    }
}
#endif
