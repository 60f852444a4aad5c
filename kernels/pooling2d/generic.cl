// SPDX-License-Identifier: MIT
// Pooling over [outer, ih, iw, lanes * V] -> [outer, oh, ow, lanes * V] with windows of kh x kw that step
// by sh, sw and start pt above and pl left of the input; pb, pr lie behind it. No local memory.
//
//   ROWS 1 (CPUs): a work-item computes one row of outputs (outer * oh of them)
//   ROWS 0:        a work-item computes V lanes of one output (GPUs, windows that are too large for strip.cl)
//
// Defines: V        lanes a step: 1, 4, 8 or 16
//          AVERAGE  1: mean over the window, 0: maximum
//          INCLUDE  1: the mean's divisor counts padding
//          INDEX    1: idx gets the position of the maximum in its window
//          INDEX_T  uchar or int
//          COUNT_T  counts work-items: uint or ulong
//          SIZED    1: sizes are the constants IH, IW, OH, OW, LANES, KERNEL_H, KERNEL_W, STRIDE_H, STRIDE_W
#include "common/storage.clh"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if V == 1
#define FLOATS float
#define INTS int
#define LOAD(p) A_AT((p), 0)
#define STORE(v, p) C_PUT((p), 0, (v))
#define STORE_INDEX(v, p) *(p) = (v)
#define TO_INDEX(v) ((INDEX_T)(v))
#else
#define FLOATS JOIN(float, V)
#define INTS JOIN(int, V)
#define LOAD(p) A_VECTOR(V, p)
#define STORE(v, p) C_PUT_VECTOR(V, p, v)
#define STORE_INDEX(v, p) JOIN(vstore, V)(v, 0, p)
#define TO_INDEX(v) JOIN(JOIN(convert_, INDEX_T), V)(v)
#endif

kernel void pool(global const A_T* x, ulong x_offset, global C_T* y, ulong y_offset,
                 global INDEX_T* idx, ulong idx_offset, ulong count, int ih, int iw, int oh, int ow,
                 int lanes, int kh, int kw, int sh, int sw, int pt, int pl, int pb, int pr) {
    if (get_global_id(0) >= count) return;
#include "pooling2d/sized.clh"
    const long pixel = (long)lanes * V;
#if ROWS
    const COUNT_T row = (COUNT_T)get_global_id(0);
    for (int ox = 0; ox < ow; ++ox)
        for (int lane = 0; lane < lanes; ++lane)
#else
    const COUNT_T id = (COUNT_T)get_global_id(0);
    const int lane = (int)(id % (COUNT_T)lanes);
    const int ox = (int)(id / (COUNT_T)lanes % (COUNT_T)ow);
    const COUNT_T row = id / (COUNT_T)lanes / (COUNT_T)ow;
#endif
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
            for (int j = x0; j < x1; ++j) sum += LOAD(plane + ((long)i * iw + j) * pixel);
#if INCLUDE
        const int divisor = (min(top + kh, ih + pb) - top) * (min(left + kw, iw + pr) - left);
#else
        const int divisor = (y1 - y0) * (x1 - x0);
#endif
        STORE(sum / (float)divisor, y + y_offset + to);
#else
        FLOATS best = -INFINITY;
#if INDEX
        INTS at = (y0 - top) * kw + (x0 - left);
#endif
        for (int i = y0; i < y1; ++i)
            for (int j = x0; j < x1; ++j) {
                const FLOATS v = LOAD(plane + ((long)i * iw + j) * pixel);
                const INTS better = (v > best) | isnan(v);
                best = select(best, v, better);
#if INDEX
                at = select(at, (INTS)((i - top) * kw + (j - left)), better);
#endif
            }
        STORE(best, y + y_offset + to);
#if INDEX
        STORE_INDEX(TO_INDEX(at), idx + idx_offset + to);
#endif
#endif
    }
}
