// SPDX-License-Identifier: MIT
// conv2d.winograd, third of three kernels: transforms the products m [position][channel][m_row] of winograd.cl to pixels, with
// bias and epilogue. Tiles are counted as in winograd_input.cl.
//
//     SPAN * SPAN products  ->  SIZE x SIZE pixels of y
//
// Define     meaning                                                                 example
// SIZE       output pixels of a tile's side: 2 or 4                                  4
// VECTOR     pixels of a row that are written together, which must divide y's rows:
//            4, or 2 if y is float, or 1                                             4
// C_STORED   type of y (common/storage.clh)                                          0
// and the epilogue (src/engine/epilogue.hpp).
//
// Work-item: one tile of one channel. Local memory: none.
#define VALUE float
#include "common/storage_fours.clh"
#include "common/winograd.clh"

#define SPAN (SIZE + 2)

// Writes VECTOR pixels, starting at q, to y.
INLINE void put_pixels(global C_T* y, const float* q, int aligned) {
#if VECTOR == 4
    const float4 v = (float4)(q[0], q[1], q[2], q[3]);
    if (aligned)
        C_PUT_ALIGNED_FOURS(y, v);
    else
        C_PUT_FOURS(y, v);
#elif VECTOR == 2
    const float2 v = (float2)(q[0], q[1]);
    if (aligned)
        *(global float2*)y = v;
    else
        vstore2(v, 0, y);
#else
    C_PUT(y, 0, q[0]);
#endif
}

kernel void winograd_output(global const float* m, ulong m_offset, global const float* bias, ulong bias_offset,
                            global C_T* y, ulong y_offset, int has_bias, int tile0, int tiles, int channels,
                            int tile_rows, int tile_columns, int y_h, int y_w, int m_row EPILOGUE_PARAMETERS) {
    const int item = get_global_id(0);
    const int channel = item / tiles, tile = item - channel * tiles;
    if (channel >= channels) return;
    const int line = (tile0 + tile) / tile_columns;
    const int left = (tile0 + tile - line * tile_columns) * SIZE;
    const int image = line / tile_rows, top = (line - image * tile_rows) * SIZE;
    const ulong position = (ulong)channels * m_row;
    global const float* const from = m + m_offset + (ulong)channel * m_row + tile;
    float p[SPAN * SPAN], pixels[SIZE * SIZE];
#pragma unroll
    for (int i = 0; i < SPAN * SPAN; ++i) p[i] = from[i * position];
#pragma unroll
    for (int j = 0; j < SPAN; ++j) {
        float f[SIZE];
        JOIN(winograd_output_, SIZE)(p + j, SPAN, f);
#pragma unroll
        for (int i = 0; i < SIZE; ++i) p[i * SPAN + j] = f[i];
    }
    const float more = has_bias ? bias[bias_offset + channel] : 0.0f;
    const ulong at = (((ulong)image * channels + channel) * y_h + top) * y_w + left;
    // All operands of the epilogue are read before anything is written, because a compiler must assume that they
    // overlap.
#pragma unroll
    for (int i = 0; i < SIZE; ++i) {
        float f[SIZE];
        JOIN(winograd_output_, SIZE)(p + i * SPAN, 1, f);
#pragma unroll
        for (int j = 0; j < SIZE; ++j) {
            pixels[i * SIZE + j] = f[j] + more;
            if (top + i < y_h && left + j < y_w) EPILOGUE(pixels[i * SIZE + j], at + i * y_w + j);
        }
    }
    y += y_offset;
    const bool aligned = y_offset % VECTOR == 0;
#pragma unroll
    for (int i = 0; i < SIZE; ++i)
#pragma unroll
        for (int j = 0; j < SIZE; j += VECTOR)
            if (top + i < y_h && left + j < y_w) put_pixels(y + (at + i * y_w + j), pixels + i * SIZE + j, aligned);
}
