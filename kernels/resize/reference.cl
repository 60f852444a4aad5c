// SPDX-License-Identifier: MIT
// resize.reference and that of its gradient: planes of x [id, ih, iw] -> planes of y [od, oh, ow], by tables that the
// host made. A dimension's table has, for n outputs and m inputs,
//   table[0 ..)        the first input that each output reads
//   table[n ..)        how many it reads
//   table[2n ..)       for each input the first output that reads it
//   table[2n + m ..)   and one past the last
// and weights[o * taps + t] is the weight with which output o reads the t-th of its inputs.
//
// Defines: those of common/element.clh. Work-item: one element of the result. Local memory: none.
#include "common/element.clh"
#include "common/inline.clh"

typedef struct {
    int in, out, taps;
    global const int* table;
    global const REAL* weights;
} Axis;

#define AXIS(name) {name##_in, name##_out, name##_taps, table + table_offset + name##_table, \
                    weights + weights_offset + name##_weights}

// The weight with which output o reads input i.
INLINE REAL weight_of(Axis a, int o, int i) {
    const int tap = i - a.table[o];
    return tap >= 0 && tap < a.table[a.out + o] ? a.weights[(long)o * a.taps + tap] : 0;
}

kernel void resize_forward(global const A_T* x, ulong x_offset, global C_T* y, ulong y_offset,
                           global const int* table, ulong table_offset, global const REAL* weights,
                           ulong weights_offset, long count,
                         int d_in, int d_out, int d_taps, int d_table, int d_weights,
                         int h_in, int h_out, int h_taps, int h_table, int h_weights,
                         int w_in, int w_out, int w_taps, int w_table, int w_weights) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const Axis d = AXIS(d), h = AXIS(h), w = AXIS(w);
    const int ow = (int)(at % w.out), oh = (int)(at / w.out % h.out), od = (int)(at / w.out / h.out % d.out);
    x += x_offset + at / w.out / h.out / d.out * d.in * h.in * w.in;
    REAL sum = 0;
    for (int a = 0; a < d.table[d.out + od]; ++a) {
        REAL plane = 0;
        for (int b = 0; b < h.table[h.out + oh]; ++b) {
            const long line = ((long)(d.table[od] + a) * h.in + h.table[oh] + b) * w.in + w.table[ow];
            REAL row = 0;
            for (int c = 0; c < w.table[w.out + ow]; ++c)
                row += w.weights[(long)ow * w.taps + c] * A_AT(x, line + c);
            plane += h.weights[(long)oh * h.taps + b] * row;
        }
        sum += d.weights[(long)od * d.taps + a] * plane;
    }
    C_PUT(y, y_offset + at, sum);
}

kernel void resize_backward(global const A_T* dy, ulong dy_offset, global C_T* dx, ulong dx_offset,
                            global const int* table, ulong table_offset, global const REAL* weights,
                            ulong weights_offset, long count,
                         int d_in, int d_out, int d_taps, int d_table, int d_weights,
                         int h_in, int h_out, int h_taps, int h_table, int h_weights,
                         int w_in, int w_out, int w_taps, int w_table, int w_weights) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const Axis d = AXIS(d), h = AXIS(h), w = AXIS(w);
    const int iw = (int)(at % w.in), ih = (int)(at / w.in % h.in), id = (int)(at / w.in / h.in % d.in);
    dy += dy_offset + at / w.in / h.in / d.in * d.out * h.out * w.out;
    REAL sum = 0;
    for (int a = d.table[2 * d.out + id]; a < d.table[2 * d.out + d.in + id]; ++a) {
        REAL plane = 0;
        for (int b = h.table[2 * h.out + ih]; b < h.table[2 * h.out + h.in + ih]; ++b) {
            const long line = ((long)a * h.out + b) * w.out;
            REAL row = 0;
            for (int c = w.table[2 * w.out + iw]; c < w.table[2 * w.out + w.in + iw]; ++c)
                row += weight_of(w, c, iw) * A_AT(dy, line + c);
            plane += weight_of(h, b, ih) * row;
        }
        sum += weight_of(d, a, id) * plane;
    }
    C_PUT(dx, dx_offset + at, sum);
}
