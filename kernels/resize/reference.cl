// SPDX-License-Identifier: MIT
// resize.reference and that of its gradient: images x [outer, id, ih, iw, lanes * V] -> y [outer, od, oh, ow, lanes * V].
// Each dimension is multiplied by a matrix that the host made, of which each row has few entries. For n outputs,
//   table[o * taps + t]      the t-th input that output o mixes
//   table[n * taps + o]      how many it mixes
// and weights[o * taps + t] is the weight. The gradient has the transposed matrices.
//
// Define                       meaning                                                                  example
// D_TAPS, H_TAPS, W_TAPS       how many inputs each output mixes; 0: the table says. 1: its weight is 1       2
// DEEP                         0: images have no depth, and od = id = 1                                       0
// V, ROWS and COUNT_T: common/image_lanes.clh; and those of common/element.clh.
//
// Local memory: none.
#include "common/image_lanes.clh"

typedef struct {
    int in, out, taps;
    global const int* table;
    global const REAL* weights;
} Axis;

#define AXIS(name) {name##_in, name##_out, name##_taps, table + table_offset + name##_table, \
                    weights + weights_offset + name##_weights}

// How many inputs output o mixes; `fixed` is one of the defines.
INLINE int taps_of(Axis a, int fixed, int o) {
    return fixed ? fixed : a.table[(long)a.out * a.taps + o];
}

INLINE REAL weight_of(Axis a, int fixed, long tap) {
    return fixed == 1 ? 1 : a.weights[tap];
}

kernel __attribute__((ROW_GROUP)) void resize(
    global const A_T* restrict x, ulong x_offset, global C_T* restrict y, ulong y_offset, global const int* restrict table,
    ulong table_offset, global const REAL* restrict weights, ulong weights_offset, long count, int lanes, int d_in, int d_out,
    int d_taps, int d_table, int d_weights, int h_in, int h_out, int h_taps, int h_table, int h_weights, int w_in, int w_out,
    int w_taps, int w_table, int w_weights) {
    if (get_global_id(0) >= (ulong)count) return;
    const Axis d = AXIS(d), h = AXIS(h), w = AXIS(w);
    const long pixel = (long)lanes * V;
    ELEMENTS(column, w.out) {
        const int oh = (int)(row % (COUNT_T)h.out);
        COUNT_T image = row / (COUNT_T)h.out;
        if (DEEP) image /= (COUNT_T)d.out;
        const long first = (long)image * d.in * h.in * w.in * pixel + (long)lane * V;
#if !DEEP && H_TAPS == 2 && W_TAPS == 2
        // Linear images of two dimensions. In the loops below a CPU takes twice the time for them.
        const int r = 2 * oh, c = 2 * column;
        global const A_T* top = x + x_offset + first + (long)h.table[r + 1] * w.in * pixel;
        global const A_T* bottom = x + x_offset + first + (long)h.table[r] * w.in * pixel;
        const long a = w.table[c + 1] * pixel, b = w.table[c] * pixel;
        const REAL of_a = w.weights[c + 1], of_b = w.weights[c];
        const FLOATS sum = h.weights[r + 1] * (of_a * load_lanes(top + a) + of_b * load_lanes(top + b)) +
                           h.weights[r] * (of_a * load_lanes(bottom + a) + of_b * load_lanes(bottom + b));
#else
        const int od = DEEP ? (int)(row / (COUNT_T)h.out % (COUNT_T)d.out) : 0;
        FLOATS sum = 0;
        for (int a = 0; a < taps_of(d, D_TAPS, od); ++a) {
            const long tap_d = (long)od * d.taps + a, depth = DEEP ? d.table[tap_d] : 0;
            FLOATS plane = 0;
            for (int b = 0; b < taps_of(h, H_TAPS, oh); ++b) {
                const long tap_h = (long)oh * h.taps + b, line = (depth * h.in + h.table[tap_h]) * w.in;
                FLOATS mix = 0;
                for (int c = 0; c < taps_of(w, W_TAPS, column); ++c) {
                    const long tap_w = (long)column * w.taps + c;
                    mix += weight_of(w, W_TAPS, tap_w) *
                           load_lanes(x + x_offset + first + (line + w.table[tap_w]) * pixel);
                }
                plane += weight_of(h, H_TAPS, tap_h) * mix;
            }
            sum += weight_of(d, D_TAPS, tap_d) * plane;
        }
#endif
        store_lanes(sum, y + y_offset + ((long)row * w.out + column) * pixel + (long)lane * V);
    }
}
