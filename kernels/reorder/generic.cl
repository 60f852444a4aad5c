// SPDX-License-Identifier: MIT
// Converts an image tensor between plain (NCHW), channels_last (NHWC) and blocked (NCHWbc) memory, as raw
// bits. On each side channel c of pixel p of image n lies at
//   n*image + (c / block)*block_step + (c % block)*lane_step + p*pixel_step
// with block = the channel count where the layout has no blocks.
//
// reorder_rows: a work-item moves BLOCK channels of up to `segment` pixels (CPUs).
// reorder_tiles: a work-group of 32 x ROWS moves 32 channels x 32 pixels through local memory, 32*33
// elements, so that both sides are accessed along their contiguous dimension (GPUs).
// Inputs: T (an unsigned type of the element's size), BLOCK, ROWS; X_LANE, X_PIXEL, Y_LANE, Y_PIXEL: the lane
// and pixel steps of each side, literal 1 where they are 1.
#include "common/repeat.clh"

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

kernel void reorder_tiles(global const T* x, ulong x_offset, global T* y, ulong y_offset, int channels,
                          int y_channels, int pixels, int x_block, int y_block, long x_image, long y_image,
                          long x_block_step, long y_block_step, long x_lane, long y_lane, long x_pixel,
                          long y_pixel, int x_along, int y_along)
{
    local T tile[32 * 33];  // [channel][pixel]
    const int p0 = get_group_id(0) * 32, c0 = get_group_id(1) * 32;
    const long n = get_group_id(2);
    const int fast = get_local_id(0);
    x += x_offset + n * x_image;
    y += y_offset + n * y_image;
    for (int slow = get_local_id(1); slow < 32; slow += ROWS) {
        const int i = x_along ? slow : fast, j = x_along ? fast : slow;
        const int c = c0 + i, p = p0 + j;
        if (p < pixels && c < y_channels)
            tile[i * 33 + j] =
                c < channels ? x[c / x_block * x_block_step + c % x_block * x_lane + p * x_pixel] : (T)0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int slow = get_local_id(1); slow < 32; slow += ROWS) {
        const int i = y_along ? slow : fast, j = y_along ? fast : slow;
        const int c = c0 + i, p = p0 + j;
        if (p < pixels && c < y_channels)
            y[c / y_block * y_block_step + c % y_block * y_lane + p * y_pixel] = tile[i * 33 + j];
    }
}
