// SPDX-License-Identifier: MIT
// Pooling on GPUs: x [outer, IH, IW, LANES * V] -> y [outer, OH, OW, LANES * V].
//
// A work-item computes a strip: STRIP outputs, one below the other, for V lanes of one column. It reads the rows under
// the strip once, and all of its reads are in flight together:
//
//      ox                      READ_ROWS x KERNEL_W elements (3x3, stride 2, STRIP 2: 5 x 3)
//    +----+                       +---+---+---+
//    | oy |   strip   <-          |   |   |   |  \  window of oy
//    +----+                       |   |   |   |  |
//    | +1 |                       |   |   |   |  /  \  window of oy + 1
//    +----+                       |   |   |   |     |
//                                 |   |   |   |     /
//
// Defines:
//   name       meaning                                                             example
//   V          lanes that are processed together: 1 or 4                           4
//   STRIP      outputs of a work-item                                              4
//   AVERAGE    1: mean, 0: maximum                                                 0
//   INCLUDE    1: the divisor of a mean counts padding                             0
//   INDEX      1: idx gets the position of the maximum in its window               1
//   INDEX_T    type of these positions: uchar or int                               uchar
//   COUNT_T    type that counts work-items: uint or ulong                          uint
//   IH, IW, OH, OW, LANES        sizes of x and y, and vectors per pixel           112, 112, 56, 56, 1
//   KERNEL_H, KERNEL_W, STRIDE_H, STRIDE_W                                         3, 3, 2, 2
//   PAD_TOP, PAD_LEFT, PAD_BOTTOM, PAD_RIGHT                                       1, 1, 1, 1
//   and those of common/storage.clh
//
// Neighbouring work-items compute neighbouring lanes, then columns, then strips. Work-groups have no common task and no
// local memory.
#include "pooling/lanes.clh"
#include "pooling/divisor.clh"

#define STRIPS ((OH + STRIP - 1) / STRIP)
#define READ_ROWS ((STRIP - 1) * STRIDE_H + KERNEL_H)
// Whether all windows are inside the image: their columns, and their rows.
#define COLUMNS_FIT (PAD_LEFT == 0 && (OW - 1) * STRIDE_W + KERNEL_W <= IW)
#define ROWS_FIT (PAD_TOP == 0 && (STRIPS * STRIP - 1) * STRIDE_H + KERNEL_H <= IH)

#if AVERAGE
#define OUTSIDE 0.0f
#else
#define OUTSIDE -INFINITY
#endif

kernel void pool_strip(global const A_T* x, ulong x_offset, global C_T* y, ulong y_offset,
                       global INDEX_T* idx, ulong idx_offset, ulong count) {
    if (get_global_id(0) >= count) return;
    const COUNT_T id = (COUNT_T)get_global_id(0), column = id / LANES, strip = column / OW;
    const int lane = (int)(id % LANES), ox = (int)(column % OW), oy = (int)(strip % STRIPS) * STRIP;
    const ulong outer = strip / STRIPS;
    const int top = oy * STRIDE_H - PAD_TOP, left = ox * STRIDE_W - PAD_LEFT;
    x += x_offset + outer * ((ulong)IH * IW * PIXEL) + lane * V;
    y += y_offset + outer * ((ulong)OH * OW * PIXEL) + lane * V;
    idx += idx_offset + outer * ((ulong)OH * OW * PIXEL) + lane * V;
    const int x_aligned = lanes_aligned(x, sizeof(A_T)), y_aligned = lanes_aligned(y, sizeof(C_T));
    const int idx_aligned = lanes_aligned(idx, sizeof(INDEX_T));

    FLOATS read[READ_ROWS][KERNEL_W];
#pragma unroll
    for (int i = 0; i < READ_ROWS; ++i)
#pragma unroll
        for (int j = 0; j < KERNEL_W; ++j) {
            read[i][j] = OUTSIDE;
            const int row = top + i, column = left + j;
            if ((ROWS_FIT || (row >= 0 && row < IH)) && (COLUMNS_FIT || (column >= 0 && column < IW))) {
                global const A_T* at = x + ((long)row * IW + column) * PIXEL;
                read[i][j] = load_lanes(at, x_aligned);
            }
        }

#pragma unroll
    for (int r = 0; r < STRIP; ++r) {
        if (oy + r >= OH) continue;
        const ulong to = ((ulong)(oy + r) * OW + ox) * PIXEL;
        const int above = top + r * STRIDE_H;
#if AVERAGE
        FLOATS sum = 0.0f;
#pragma unroll
        for (int i = 0; i < KERNEL_H; ++i)
#pragma unroll
            for (int j = 0; j < KERNEL_W; ++j) sum += read[r * STRIDE_H + i][j];
        store_lanes(sum / (float)divisor_of(above, left, KERNEL_H, KERNEL_W, IH, IW, PAD_BOTTOM, PAD_RIGHT), y + to, y_aligned);
#else
        FLOATS best = -INFINITY;
        // If all elements are -INFINITY, the maximum is the first element of the window that is inside the image.
        INTS at = (INTS)((max(above, 0) - above) * KERNEL_W + max(left, 0) - left);
#pragma unroll
        for (int i = 0; i < KERNEL_H; ++i)
#pragma unroll
            for (int j = 0; j < KERNEL_W; ++j) {
                const FLOATS v = read[r * STRIDE_H + i][j];
                const INTS better = (v > best) | isnan(v);
                best = select(best, v, better);
                at = select(at, (INTS)(i * KERNEL_W + j), better);
            }
        store_lanes(best, y + to, y_aligned);
#if INDEX
        store_index(at, idx + to, idx_aligned);
#endif
#endif
    }
}
