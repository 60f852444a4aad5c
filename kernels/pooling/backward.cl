// SPDX-License-Identifier: MIT
// Gradient of pooling: dy [outer, oh, ow, lanes * V] -> dx [outer, ih, iw, lanes * V]. Each element of dx is a sum, in
// a fixed order, over the windows that contain it. For a maximum, a window contributes its dy if its maximum was at
// this element. For a mean, it contributes its dy divided by the number of elements.
//
//      windows of 3x3 with stride 2 that contain one element of dx:  rows [y0, y1), columns [x0, x1) of dy
//
//           y0 +---------+
//              |    +----|----+ y0 + 1
//              |    | *  |    |          *: the element (iy, ix) of dx
//              +----|----+    |
//                   +---------+
//
// Sizes and defines are those of generic.cl.
//
// A work-item computes, with ROWS 1 (CPUs), one of the outer * ih rows of dx, and with ROWS 0 V lanes of one element.
// GPUs use this kernel where windows need too many registers for backward_strip.cl. Work-groups have no common task and
// no local memory.
#include "common/image_lanes.clh"
#include "pooling/divisor.clh"

INLINE INTS load_index(global const INDEX_T* p) {
#if V == 1
    return (int)*p;
#else
    return JOIN(convert_int, V)(JOIN(vload, V)(0, p));
#endif
}

kernel __attribute__((ROW_GROUP)) void pool_backward(global const A_T* dy, ulong dy_offset, global const INDEX_T* idx,
                          ulong idx_offset, global C_T* dx, ulong dx_offset, ulong count, int ih,
                          int iw, int oh, int ow, int lanes, int kh, int kw, int sh, int sw, int pt,
                          int pl, int pb, int pr) {
    if (get_global_id(0) >= count) return;
#include "pooling/sized.clh"
    const long pixel = (long)lanes * V;
    ELEMENTS(ix, iw)
    {
        const int iy = (int)(row % (COUNT_T)ih);
        const long outer = (long)(row / (COUNT_T)ih);
        // Windows [y0, y1) x [x0, x1) contain (iy, ix).
        const int y0 = iy + pt < kh ? 0 : (iy + pt - kh) / sh + 1;
        const int y1 = min((iy + pt) / sh + 1, oh);
        const int x0 = ix + pl < kw ? 0 : (ix + pl - kw) / sw + 1;
        const int x1 = min((ix + pl) / sw + 1, ow);
        const ulong plane = (ulong)(outer * oh * ow * pixel + (long)lane * V);
        FLOATS sum = 0.0f;
#if SIZED
        // The largest possible number of windows, a constant: the loops are unrolled, so that all reads are in flight.
#pragma unroll
        for (int i_ = 0; i_ < (KERNEL_H + STRIDE_H - 1) / STRIDE_H; ++i_)
#pragma unroll
            for (int j_ = 0; j_ < (KERNEL_W + STRIDE_W - 1) / STRIDE_W; ++j_) {
                const int i = y0 + i_, j = x0 + j_;
                if (i >= y1 || j >= x1) continue;
#else
        for (int i = y0; i < y1; ++i)
            for (int j = x0; j < x1; ++j) {
#endif
                const ulong from = plane + (ulong)(((long)i * ow + j) * pixel);
                const FLOATS d = load_lanes(dy + dy_offset + from);
#if AVERAGE
                const int top = i * sh - pt, left = j * sw - pl;
                const int divisor = divisor_of(top, left, kh, kw, ih, iw, pb, pr);
                sum += d / (float)divisor;
#else
                const int own = (iy + pt - i * sh) * kw + (ix + pl - j * sw);
                const INTS at = load_index(idx + idx_offset + from);
                sum += select((FLOATS)0.0f, d, at == (INTS)own);
#endif
            }
        store_lanes(sum, dx + dx_offset + (ulong)(((long)row * iw + ix) * pixel + (long)lane * V));
    }
}
