// SPDX-License-Identifier: MIT
// Converts an image tensor between plain (NCHW), channels_last (NHWC) and blocked (NCHWbc) memory, as raw
// bits. On each side channel c of pixel p of image n lies at
//   n*image + (c / block)*block_step + (c % block)*lane_step + p*pixel_step
// with block = the channel count where the layout has no blocks.
//
// reorder_rows: a work-item moves BLOCK channels of up to `segment` pixels (CPUs).
// reorder_tiles: a work-group moves a tile through local memory (GPUs).
//
// Defines: T                 an unsigned type of the element's size
//          X_LANE, X_PIXEL   the steps of a channel and of a pixel in x, literal 1 where they are 1
//          Y_LANE, Y_PIXEL   those in y
// reorder_rows:
//          BLOCK             channels that lie at equal steps on both sides: 8 or 16
// reorder_tiles:
//          CHANNELS, PIXELS  sides of the tile: 32 and 128
//          PITCH             elements from a channel of the tile to the next: 129, so that the work-items of a
//                            warp use banks of local memory of their own, whichever way they walk over the tile
//          GROUP             work-items of a work-group: 256
//          X_ALONG, Y_ALONG  1: that side is contiguous along pixels, 0: along channels
//          OFFSET_T          holds an offset within a tile: uint, or ulong for planes that are very large
// Local memory: CHANNELS * PITCH elements.
#include "common/repeat.clh"

#ifdef BLOCK
#define MOVE(l, _) to[(l) * (ulong)(Y_LANE)] = from[(l) * (ulong)(X_LANE)];

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
            REPEAT_A(BLOCK, MOVE, 0)
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
// A work-group moves CHANNELS x PIXELS elements of an image through local memory. Each side is walked along the
// dimension in which it is contiguous, by neighbouring work-items, so that both sides are read and written in whole
// lines. A plane is a run of `pixels` elements: the width of its rows does not matter.
//
//                 PIXELS (x: plain)                                CHANNELS (y: channels_last)
//               +-----------------+                              +----------+
//      CHANNELS | 0 1 2 3 ..      |  -> local tile, rows of      | 0 1 2 .. |  PIXELS
//               |                 |     PITCH elements        -> |          |
//               +-----------------+                              +----------+
//
// The channels of a tile lie at equal steps on each side: CHANNELS divides the blocks of both.
#define ELEMENTS (CHANNELS * PIXELS)
#define STEPS ((ELEMENTS + GROUP - 1) / GROUP)
#define IN_TILE(e) (ELEMENTS % GROUP == 0 || (e) < ELEMENTS)
#define CHANNEL(along, e) ((along) ? (e) / PIXELS : (e) % CHANNELS)
#define PIXEL(along, e) ((along) ? (e) % PIXELS : (e) / CHANNELS)

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
    // All reads are under way before the first is stored.
    T values[STEPS];
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int e = s * GROUP + item, c = CHANNEL(X_ALONG, e), p = PIXEL(X_ALONG, e);
        values[s] = 0;
        if (c < x_channels && p < tile_pixels) values[s] = x[c * (OFFSET_T)(X_LANE) + p * (OFFSET_T)(X_PIXEL)];
    }
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int e = s * GROUP + item;
        if (IN_TILE(e)) tile[CHANNEL(X_ALONG, e) * PITCH + PIXEL(X_ALONG, e)] = values[s];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int e = s * GROUP + item, c = CHANNEL(Y_ALONG, e), p = PIXEL(Y_ALONG, e);
        if (c < tile_channels && p < tile_pixels)
            y[c * (OFFSET_T)(Y_LANE) + p * (OFFSET_T)(Y_PIXEL)] = tile[c * PITCH + p];
    }
}
#endif
