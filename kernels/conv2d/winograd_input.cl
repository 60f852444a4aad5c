// SPDX-License-Identifier: MIT
// conv2d.winograd, first of three kernels: transforms tiles of the image to their positions.
//
//     tile of the image: SPAN x SPAN pixels  ->  SPAN * SPAN positions       (for SIZE x SIZE pixels of output)
//
//     v [position][channel][v_row]     the tiles of a slice, from tile0 on, are next to each other
//
// Define     meaning                                       example
// SIZE       output pixels of a tile's side: 2 or 4        4
// A_STORED   type of the image (common/storage.clh)        0
// SPAN       SIZE + 2, defined here                        6
//
// Tiles are counted along rows of the image, then down, then from image to image. Neighbouring work-items have neighbouring
// tiles, so they write neighbouring floats, and winograd.cl reads rows of them.
// Work-item: one tile of one channel. Local memory: none.
#define VALUE float
#include "common/storage.clh"
#include "common/winograd.clh"

#define SPAN (SIZE + 2)

kernel void winograd_input(global const A_T* x, ulong x_offset, global float* v, ulong v_offset, int tile0, int tiles,
                           int channels, int tile_rows, int tile_columns, int x_h, int x_w, int pad_h, int pad_w,
                           int v_row) {
    const int item = get_global_id(0);
    const int channel = item / tiles, tile = item - channel * tiles;
    if (channel >= channels) return;
    const int line = (tile0 + tile) / tile_columns, column = tile0 + tile - line * tile_columns;
    const int image = line / tile_rows, row = line - image * tile_rows;
    const int top = row * SIZE - pad_h, left = column * SIZE - pad_w;
    global const A_T* const from = x + x_offset + ((ulong)image * channels + channel) * ((ulong)x_h * x_w);
    float d[SPAN * SPAN];
#pragma unroll
    for (int i = 0; i < SPAN; ++i)
#pragma unroll
        for (int j = 0; j < SPAN; ++j)
            d[i * SPAN + j] = (uint)(top + i) < (uint)x_h && (uint)(left + j) < (uint)x_w
                                  ? A_AT(from, (top + i) * x_w + left + j)
                                  : 0.0f;
#pragma unroll
    for (int j = 0; j < SPAN; ++j) {
        float f[SPAN];
        JOIN(winograd_input_, SIZE)(d + j, SPAN, f);
#pragma unroll
        for (int i = 0; i < SPAN; ++i) d[i * SPAN + j] = f[i];
    }
    const ulong position = (ulong)channels * v_row;
    global float* const to = v + v_offset + (ulong)channel * v_row + tile;
#pragma unroll
    for (int i = 0; i < SPAN; ++i) {
        float f[SPAN];
        JOIN(winograd_input_, SIZE)(d + i * SPAN, 1, f);
#pragma unroll
        for (int j = 0; j < SPAN; ++j) to[(i * SPAN + j) * position] = f[j];
    }
}
