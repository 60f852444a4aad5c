// SPDX-License-Identifier: MIT
// DepthTaps, x [n, channels, depth, plane] -> y [n, out, channels, taps, plane], and its gradient:
//
//     x of one channel                                 y of one channel
//     plane 0 ----------------------------------+      output o, tap 0: plane o * stride - pad
//     plane 1 ---------------------------------- \     output o, tap 1: plane o * stride - pad + dilate
//     ...                                              zeros where there is no such plane
//
// Defines: those of common/element.clh. Work-item: one element of the result. Local memory: none.
#include "common/element.clh"

kernel void depth_taps(global const A_T* x, ulong x_offset, global C_T* y, ulong y_offset, long count, long plane,
                       int channels, int depth, int out, int taps, int stride, int pad, int dilate) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const long i = at % plane, k = at / plane % taps, c = at / plane / taps % channels;
    const long o = at / plane / taps / channels % out, n = at / plane / taps / channels / out;
    const long from = o * stride - pad + k * dilate;
    REAL v = 0;
    if (from >= 0 && from < depth) v = A_AT(x, x_offset + ((n * channels + c) * depth + from) * plane + i);
    C_PUT(y, y_offset + at, v);
}

kernel void depth_taps_backward(global const A_T* y, ulong y_offset, global C_T* x, ulong x_offset, long count,
                                long plane, int channels, int depth, int out, int taps, int stride, int pad,
                                int dilate) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const long i = at % plane, d = at / plane % depth, c = at / plane / depth % channels;
    const long n = at / plane / depth / channels;
    REAL sum = 0;
    for (int k = 0; k < taps; ++k) {
        const long shifted = d + pad - (long)k * dilate;
        if (shifted < 0 || shifted % stride != 0 || shifted / stride >= out) continue;
        sum += A_AT(y, y_offset + (((n * out + shifted / stride) * channels + c) * taps + k) * plane + i);
    }
    C_PUT(x, x_offset + at, sum);
}
