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
#include "common/storage.clh"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if V == 1
#define FLOATS float
#define INTS int
#define LOAD(p) A_AT((p), 0)
#define LOAD_INDEX(p) (*(p))
#define STORE(v, p) C_PUT((p), 0, (v))
#define TO_INTS(v) ((int)(v))
#else
#define FLOATS JOIN(float, V)
#define INTS JOIN(int, V)
#define LOAD(p) A_VECTOR(V, p)
#define LOAD_INDEX(p) JOIN(vload, V)(0, p)
#define STORE(v, p) C_PUT_VECTOR(V, p, v)
#define TO_INTS(v) JOIN(convert_int, V)(v)
#endif

kernel void pool_backward(global const A_T* dy, ulong dy_offset, global const INDEX_T* idx,
                          ulong idx_offset, global C_T* dx, ulong dx_offset, ulong count, int ih,
                          int iw, int oh, int ow, int lanes, int kh, int kw, int sh, int sw, int pt,
                          int pl, int pb, int pr) {
    if (get_global_id(0) >= count) return;
#include "pooling2d/sized.clh"
    const long pixel = (long)lanes * V;
#if ROWS
    const COUNT_T row = (COUNT_T)get_global_id(0);
    for (int ix = 0; ix < iw; ++ix)
        for (int lane = 0; lane < lanes; ++lane)
#else
    const COUNT_T id = (COUNT_T)get_global_id(0);
    const int lane = (int)(id % (COUNT_T)lanes);
    const int ix = (int)(id / (COUNT_T)lanes % (COUNT_T)iw);
    const COUNT_T row = id / (COUNT_T)lanes / (COUNT_T)iw;
#endif
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
                const FLOATS d = LOAD(dy + dy_offset + from);
#if AVERAGE
                const int top = i * sh - pt, left = j * sw - pl;
#if INCLUDE
                const int divisor = (min(top + kh, ih + pb) - top) * (min(left + kw, iw + pr) - left);
#else
                const int divisor = (min(top + kh, ih) - max(top, 0)) * (min(left + kw, iw) - max(left, 0));
#endif
                sum += d / (float)divisor;
#else
                const int own = (iy + pt - i * sh) * kw + (ix + pl - j * sw);
                const INTS at = TO_INTS(LOAD_INDEX(idx + idx_offset + from));
                sum += select((FLOATS)0.0f, d, at == (INTS)own);
#endif
            }
        STORE(sum, dx + dx_offset + (ulong)(((long)row * iw + ix) * pixel + (long)lane * V));
    }
}
