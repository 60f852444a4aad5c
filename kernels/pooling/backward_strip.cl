// SPDX-License-Identifier: MIT
// Gradient of pooling on GPUs: dy [outer, OH, OW, LANES * V] -> dx [outer, IH, IW, LANES * V].
//
// A work-item computes a strip: STRIP elements of dx, one below the other, for V lanes of one column. Each element is a
// sum, in a fixed order, over the windows that contain it. For a maximum, a window contributes its dy if its maximum
// was at this element. For a mean, it contributes its dy divided by the number of elements. The strip's windows are
// read once, and all reads are in flight together. Rows are counted from the top of the padding. There each strip
// starts at a multiple of the stride, so the compiler knows which windows contain which row.
//
//    3x3, stride 2, STRIP 4: WINDOW_ROWS 3, WINDOW_COLUMNS 2
//
//      window row   -1:  2            a number is the row of the window that covers row r of the strip
//      (of dy)       0:  0 1 2
//                    1:      0 1
//                        r=0 1 2 3
//
// Defines: those of strip.cl, where STRIP must be a multiple of STRIDE_H. Example: 8.
//
// Neighbouring work-items compute neighbouring lanes, then columns, then strips. Work-groups have no common task and no
// local memory.
#include "pooling/lanes.clh"
#include "pooling/divisor.clh"

#define STRIPS ((IH + PAD_TOP + STRIP - 1) / STRIP)
#define ROWS_BEFORE ((KERNEL_H - 1) / STRIDE_H)
#define COLUMNS_BEFORE ((KERNEL_W - 1) / STRIDE_W)
#define WINDOW_ROWS ((STRIP - 1) / STRIDE_H + ROWS_BEFORE + 1)
#define WINDOW_COLUMNS (COLUMNS_BEFORE + 1)

kernel void pool_backward_strip(global const A_T* dy, ulong dy_offset, global const INDEX_T* idx,
                                ulong idx_offset, global C_T* dx, ulong dx_offset, ulong count) {
    if (get_global_id(0) >= count) return;
    const COUNT_T id = (COUNT_T)get_global_id(0), column = id / LANES, row = column / IW;
    const int lane = (int)(id % LANES), ix = (int)(column % IW), strip = (int)(row % STRIPS);
    const ulong outer = row / STRIPS;
    dy += dy_offset + outer * ((ulong)OH * OW * PIXEL) + lane * V;
    idx += idx_offset + outer * ((ulong)OH * OW * PIXEL) + lane * V;
    dx += dx_offset + outer * ((ulong)IH * IW * PIXEL) + lane * V;
    const int dy_aligned = lanes_aligned(dy, sizeof(A_T)), dx_aligned = lanes_aligned(dx, sizeof(C_T));
    const int idx_aligned = lanes_aligned(idx, sizeof(INDEX_T));
    const int i0 = strip * (STRIP / STRIDE_H) - ROWS_BEFORE, j0 = (ix + PAD_LEFT) / STRIDE_W - COLUMNS_BEFORE;
    // The column of window j0 that covers column ix.
    const int meets = ix + PAD_LEFT - j0 * STRIDE_W;

    FLOATS d[WINDOW_ROWS][WINDOW_COLUMNS];
#if !AVERAGE
    INTS at[WINDOW_ROWS][WINDOW_COLUMNS];
#endif
#pragma unroll
    for (int a = 0; a < WINDOW_ROWS; ++a)
#pragma unroll
        for (int b = 0; b < WINDOW_COLUMNS; ++b) {
            const int i = i0 + a, j = j0 + b;
            d[a][b] = 0.0f;
#if !AVERAGE
            at[a][b] = -1;
#endif
            if (i >= 0 && i < OH && j >= 0 && j < OW && meets - b * STRIDE_W < KERNEL_W) {
                const ulong from = ((ulong)i * OW + j) * PIXEL;
                d[a][b] = load_lanes(dy + from, dy_aligned);
#if AVERAGE
                d[a][b] /= (float)divisor_of(i * STRIDE_H - PAD_TOP, j * STRIDE_W - PAD_LEFT, KERNEL_H, KERNEL_W, IH,
                                               IW, PAD_BOTTOM, PAD_RIGHT);
#else
                at[a][b] = load_index(idx + from, idx_aligned);
#endif
            }
        }

#pragma unroll
    for (int r = 0; r < STRIP; ++r) {
        const int iy = strip * STRIP + r - PAD_TOP;
        if (iy < 0 || iy >= IH) continue;
        FLOATS sum = 0.0f;
#pragma unroll
        for (int a = 0; a < WINDOW_ROWS; ++a) {
            const int line = r - (a - ROWS_BEFORE) * STRIDE_H;
            if (line < 0 || line >= KERNEL_H) continue;
#pragma unroll
            for (int b = 0; b < WINDOW_COLUMNS; ++b) {
#if AVERAGE
                sum += d[a][b];
#else
                const int own = line * KERNEL_W + meets - b * STRIDE_W;
                sum += select((FLOATS)0.0f, d[a][b], at[a][b] == (INTS)own);
#endif
            }
        }
        store_lanes(sum, dx + ((ulong)iy * IW + ix) * PIXEL, dx_aligned);
    }
}
