// SPDX-License-Identifier: MIT
// interpolation.reference and interpolation.backward: images [outer, h, w, lanes * V], resized by tables that the host made.
// A table has for each axis, rows first and columns from `columns` on:
//   table[0 ..)      the low coordinate of each of n outputs
//   table[n ..)      the high coordinate
//   table[2n ..)     the bits of the high coordinate's weight, a float
//   table[3n ..)     for each of m inputs the first output that reads it, and m ints further one past the last
//
// Define    meaning                                                       example
// NEAREST   1: only the low coordinate is read                            0
// V, ROWS and COUNT_T: common/image_lanes.clh
//
// Local memory: none.

#include "common/image_lanes.clh"

kernel void interpolate(global const float* x, ulong x_offset, global float* y, ulong y_offset,
                        global const int* table, ulong table_offset, ulong count, int columns, int ih,
                        int iw, int oh, int ow, int lanes) {
    if (get_global_id(0) >= count) return;
    global const int* rows_of = table + table_offset;
    global const int* columns_of = rows_of + columns;
    const long pixel = (long)lanes * V;
    ELEMENTS(column, ow) {
        const int oy = (int)(row % (COUNT_T)oh);
        const long outer = (long)(row / (COUNT_T)oh);
        global const float* plane = x + x_offset + outer * ih * iw * pixel + (long)lane * V;
        global const float* top = plane + (long)rows_of[oy] * iw * pixel;
        const long a = columns_of[column] * pixel;
        FLOATS v = load_lanes(top + a);
#if !NEAREST
        global const float* bottom = plane + (long)rows_of[oh + oy] * iw * pixel;
        const long b = columns_of[ow + column] * pixel;
        const float wy = as_float(rows_of[2 * oh + oy]), wx = as_float(columns_of[2 * ow + column]);
        v = (1.0f - wy) * ((1.0f - wx) * v + wx * load_lanes(top + b)) +
            wy * ((1.0f - wx) * load_lanes(bottom + a) + wx * load_lanes(bottom + b));
#endif
        store_lanes(v, y + y_offset + (ulong)(((long)row * ow + column) * pixel + (long)lane * V));
    }
}

// The weight with which output o of an axis of n outputs reads input i.
INLINE float weight_of(global const int* axis, int n, int o, int i) {
#if NEAREST
    return axis[o] == i ? 1.0f : 0.0f;
#else
    const float w = as_float(axis[2 * n + o]);
    return (axis[o] == i ? 1.0f - w : 0.0f) + (axis[n + o] == i ? w : 0.0f);
#endif
}

// Computes dx [outer, ih, iw, ...] from dy [outer, oh, ow, ...]: each input sums over the outputs that read it.
kernel void interpolate_backward(global const float* dy, ulong dy_offset, global float* dx,
                                 ulong dx_offset, global const int* table, ulong table_offset,
                                 ulong count, int columns, int ih, int iw, int oh, int ow, int lanes) {
    if (get_global_id(0) >= count) return;
    global const int* rows_of = table + table_offset;
    global const int* columns_of = rows_of + columns;
    const long pixel = (long)lanes * V;
    ELEMENTS(column, iw) {
        const int iy = (int)(row % (COUNT_T)ih);
        const long outer = (long)(row / (COUNT_T)ih);
        global const float* plane = dy + dy_offset + outer * oh * ow * pixel + (long)lane * V;
        const int y0 = rows_of[3 * oh + iy], y1 = rows_of[3 * oh + ih + iy];
        const int x0 = columns_of[3 * ow + column], x1 = columns_of[3 * ow + iw + column];
        FLOATS sum = 0.0f;
        for (int i = y0; i < y1; ++i) {
            const float wy = weight_of(rows_of, oh, i, iy);
            FLOATS line = 0.0f;
            for (int j = x0; j < x1; ++j)
                line += weight_of(columns_of, ow, j, column) * load_lanes(plane + ((long)i * ow + j) * pixel);
            sum += wy * line;
        }
        store_lanes(sum, dx + dx_offset + (ulong)(((long)row * iw + column) * pixel + (long)lane * V));
    }
}
