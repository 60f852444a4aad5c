// SPDX-License-Identifier: MIT
// Pooling of any rank and its gradient: planes of x [id, ih, iw] -> planes of y [od, oh, ow].
//
//        x: a window along one dimension                   y
//     first(o)                last(o)
//        |                       |
//    ----+---+---+---+---+---+---+----    maximum    ---+---+---
//        | x |   | x |   | x |            or mean ->    | o |
//    ----+---+---+---+---+---+---+----               ---+---+---
//          dilate = 2, kernel = 3
//
// Define               meaning                                                              example
// AVERAGE              1: mean, 0: maximum                                                  0
// ADAPTIVE             1: windows divide x into parts, 0: they are `kernel` wide            0
// INDEX                1: idx gets the positions of maxima                                  1
// INCLUDE              1: the divisor of a mean counts padding                              0
// and those of common/element.clh
//
// A position is an element's index in its plane of x, or -1 where a window is empty. Work-item: one element of the
// result. The gradient is gathered, in a fixed order of windows. Local memory: none.
#include "common/element.clh"
#include "common/inline.clh"

// One dimension: its sizes in x and in y, and the windows.
typedef struct {
    int in, out, taps, stride, pad, pad_end, dilate;
} Axis;

// The window of output o: positions first(o), first(o) + dilate, ... below last(o), which may be in the padding.
INLINE int first(Axis a, int o) {
    return ADAPTIVE ? (int)((long)o * a.in / a.out) : o * a.stride - a.pad;
}
INLINE int last(Axis a, int o) {
    return ADAPTIVE ? (int)(((long)(o + 1) * a.in + a.out - 1) / a.out)
                    : o * a.stride - a.pad + (a.taps - 1) * a.dilate + 1;
}
// The first position of the window that is in x, and the end of those.
INLINE int begin(Axis a, int o) {
    const int from = first(a, o);
    return from >= 0 ? from : from + (-from + a.dilate - 1) / a.dilate * a.dilate;
}
INLINE int end(Axis a, int o) { return min(last(a, o), a.in); }
// The number of elements by which a mean is divided.
INLINE int width(Axis a, int o) {
    const int span = INCLUDE ? min(last(a, o), a.in + a.pad_end) - first(a, o) : end(a, o) - begin(a, o);
    return max(span + a.dilate - 1, 0) / a.dilate;
}
// Whether the window of output o, from lowest(i) to highest(i), has position i.
INLINE bool has(Axis a, int o, int i) { return a.dilate == 1 || (i - first(a, o)) % a.dilate == 0; }
// The outputs whose windows may have position i: from lowest(i) to highest(i).
INLINE int lowest(Axis a, int i) {
    if (ADAPTIVE) return (int)((long)i * a.out / a.in);
    const int reach = i + a.pad - (a.taps - 1) * a.dilate;
    return reach <= 0 ? 0 : (reach + a.stride - 1) / a.stride;
}
INLINE int highest(Axis a, int i) {
    if (ADAPTIVE) return (int)(((long)(i + 1) * a.out + a.in - 1) / a.in) - 1;
    return min((i + a.pad) / a.stride, a.out - 1);
}

#define AXIS(name) {name##_in, name##_out, name##_kernel, name##_stride, name##_pad, name##_end, name##_dilate}

kernel void pool_forward(global const A_T* x, ulong x_offset, global C_T* y, ulong y_offset, global long* idx,
                         ulong idx_offset, long count, int divisor,
                         int d_in, int d_out, int d_kernel, int d_stride, int d_pad, int d_end, int d_dilate,
                         int h_in, int h_out, int h_kernel, int h_stride, int h_pad, int h_end, int h_dilate,
                         int w_in, int w_out, int w_kernel, int w_stride, int w_pad, int w_end, int w_dilate) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const Axis d = AXIS(d), h = AXIS(h), w = AXIS(w);
    const int ow = (int)(at % w.out), oh = (int)(at / w.out % h.out), od = (int)(at / w.out / h.out % d.out);
    const long plane = at / w.out / h.out / d.out;
    x += x_offset + plane * d.in * h.in * w.in;
#if AVERAGE
    REAL sum = 0;
#else
    REAL best = -INFINITY;
    long position = -1;
#endif
    for (int i = begin(d, od); i < end(d, od); i += d.dilate)
        for (int j = begin(h, oh); j < end(h, oh); j += h.dilate)
            for (int k = begin(w, ow); k < end(w, ow); k += w.dilate) {
                const long from = ((long)i * h.in + j) * w.in + k;
                const REAL v = A_AT(x, from);
#if AVERAGE
                sum += v;
#else
                if (v > best || v != v || position < 0) {
                    best = v;
                    position = from;
                }
#endif
            }
#if AVERAGE
    const REAL by = divisor > 0 ? divisor : (REAL)width(d, od) * width(h, oh) * width(w, ow);
    C_PUT(y, y_offset + at, sum / by);
#else
    C_PUT(y, y_offset + at, best);
#if INDEX
    idx[idx_offset + at] = position;
#endif
#endif
}

kernel void pool_backward(global const A_T* dy, ulong dy_offset, global const long* idx, ulong idx_offset,
                          global C_T* dx, ulong dx_offset, long count, int divisor,
                         int d_in, int d_out, int d_kernel, int d_stride, int d_pad, int d_end, int d_dilate,
                         int h_in, int h_out, int h_kernel, int h_stride, int h_pad, int h_end, int h_dilate,
                         int w_in, int w_out, int w_kernel, int w_stride, int w_pad, int w_end, int w_dilate) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const Axis d = AXIS(d), h = AXIS(h), w = AXIS(w);
    const int iw = (int)(at % w.in), ih = (int)(at / w.in % h.in), id = (int)(at / w.in / h.in % d.in);
    const long plane = at / w.in / h.in / d.in;
    const long position = ((long)id * h.in + ih) * w.in + iw;
    dy += dy_offset + plane * d.out * h.out * w.out;
    idx += idx_offset + plane * d.out * h.out * w.out;
    REAL sum = 0;
    for (int i = lowest(d, id); i <= highest(d, id); ++i)
        for (int j = lowest(h, ih); j <= highest(h, ih); ++j)
            for (int k = lowest(w, iw); k <= highest(w, iw); ++k) {
                const long from = ((long)i * h.out + j) * w.out + k;
#if AVERAGE
                if (!has(d, i, id) || !has(h, j, ih) || !has(w, k, iw)) continue;
                const REAL by = divisor > 0 ? divisor : (REAL)width(d, i) * width(h, j) * width(w, k);
                sum += A_AT(dy, from) / by;
#else
                if (idx[from] == position) sum += A_AT(dy, from);
#endif
            }
    C_PUT(dx, dx_offset + at, sum);
}
