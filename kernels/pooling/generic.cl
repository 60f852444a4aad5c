// SPDX-License-Identifier: MIT
// Pooling: x [outer, ih, iw, lanes * V] -> y [outer, oh, ow, lanes * V]. Windows have kh x kw elements and are sh and
// sw apart. The input is padded by pt rows above, pb below, pl columns on the left and pr on the right.
//
//                    x: one window, V lanes of each element            y
//        (top, left)  +---+---+---+                                  +---+---+
//                     |   |   |   |  kh                              |   |   |
//                     +---+---+---+     -> maximum or mean ->        +---+---+
//                     |   |   |   |                                  |   | * |  (oy, ox)
//                     +---+---+---+                                  +---+---+
//                          kw                top = oy * sh - pt, left = ox * sw - pl
//
// Defines:
//   name       meaning                                                             example
//   V          lanes that are processed together: 1, 4, 8 or 16                    4
//   ROWS       1: a work-item computes a row of y (CPUs), 0: one element           0
//   SIZED      1: sizes are the constants below, 0: they are arguments             1
//   IH, IW, OH, OW, LANES, KERNEL_H, KERNEL_W, STRIDE_H, STRIDE_W                  56, 56, 28, 28, 1, 3, 3, 2, 2
//   AVERAGE    1: mean, 0: maximum                                                 0
//   INCLUDE    1: the divisor of a mean counts padding                             0
//   INDEX      1: idx gets the position of the maximum in its window               1
//   INDEX_T    type of these positions: uchar or int                               uchar
//   COUNT_T    type that counts work-items: uint or ulong                          uint
//   and those of common/storage.clh
//
// A work-item computes, with ROWS 1, one of the outer * oh rows of y, and with ROWS 0 V lanes of one element. GPUs use
// this kernel for windows that are too large for strip.cl. Work-groups have no common task and no local memory.
#include "common/image_lanes.clh"
#include "pooling/divisor.clh"

INLINE void store_index(INTS at, global INDEX_T* p) {
#if V == 1
    *p = (INDEX_T)at;
#else
    JOIN(vstore, V)(JOIN(JOIN(convert_, INDEX_T), V)(at), 0, p);
#endif
}

kernel __attribute__((ROW_GROUP)) void pool(global const A_T* x, ulong x_offset, global C_T* y, ulong y_offset,
                 global INDEX_T* idx, ulong idx_offset, ulong count, int ih, int iw, int oh, int ow,
                 int lanes, int kh, int kw, int sh, int sw, int pt, int pl, int pb, int pr) {
    if (get_global_id(0) >= count) return;
#include "pooling/sized.clh"
    const long pixel = (long)lanes * V;
    ELEMENTS(ox, ow)
    {
        const int oy = (int)(row % (COUNT_T)oh);
        const long outer = (long)(row / (COUNT_T)oh);
        const int top = oy * sh - pt, left = ox * sw - pl;
        const int y0 = max(top, 0), y1 = min(top + kh, ih);
        const int x0 = max(left, 0), x1 = min(left + kw, iw);
        global const A_T* plane = x + x_offset + outer * ih * iw * pixel + (long)lane * V;
        const ulong to = (ulong)(((long)row * ow + ox) * pixel + (long)lane * V);
#if AVERAGE
        FLOATS sum = 0.0f;
        for (int i = y0; i < y1; ++i)
            for (int j = x0; j < x1; ++j) sum += load_lanes(plane + ((long)i * iw + j) * pixel);
        const int divisor = divisor_of(top, left, kh, kw, ih, iw, pb, pr);
        store_lanes(sum / (float)divisor, y + y_offset + to);
#else
        FLOATS best = -INFINITY;
#if INDEX
        INTS at = (y0 - top) * kw + (x0 - left);
#endif
        for (int i = y0; i < y1; ++i)
            for (int j = x0; j < x1; ++j) {
                const FLOATS v = load_lanes(plane + ((long)i * iw + j) * pixel);
                const INTS better = (v > best) | isnan(v);
                best = select(best, v, better);
#if INDEX
                at = select(at, (INTS)((i - top) * kw + (j - left)), better);
#endif
            }
        store_lanes(best, y + y_offset + to);
#if INDEX
        store_index(at, idx + idx_offset + to);
#endif
#endif
    }
}
