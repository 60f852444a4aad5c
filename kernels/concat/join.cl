// SPDX-License-Identifier: MIT
// Joins up to 8 arrays side by side on GPUs, in one launch. In every layout, input i is [rows, width i] and the output is
// [rows, line]. The inputs of one launch fill a part of each row of the output:
//
//      a row of y:  | ... | x0 | x1 |  x2  | .. | ... |
//                         first                         ends behind `part` steps; xi begins at step bi of them
//
// A work-item copies VECTOR elements. `line`, `first`, `part` and `b1` to `b7` count steps of VECTOR elements. The begins
// of absent inputs are `part`, so that none is taken. No local memory.
//
// Define   meaning                                              example
// T        uchar, ushort, uint or ulong                         uint
// VECTOR   elements per work-item: 1 or 4                       4
// INDEX    uint or ulong, for numbers up to that of work-items  uint
#include "common/join.clh"

#define TAKE(i, next)             \
    if (k >= b##i) {              \
        x = x##i + x##i##_offset; \
        begin = b##i;             \
        width = (next) - b##i;    \
    }

kernel void join(global const T* x0, ulong x0_offset, global const T* x1, ulong x1_offset,
                 global const T* x2, ulong x2_offset, global const T* x3, ulong x3_offset,
                 global const T* x4, ulong x4_offset, global const T* x5, ulong x5_offset,
                 global const T* x6, ulong x6_offset, global const T* x7, ulong x7_offset,
                 global T* y, ulong y_offset, ulong count, long line, long first, int part, int b1, int b2, int b3,
                 int b4, int b5, int b6, int b7) {
    if (get_global_id(0) >= count) return;
    const INDEX id = (INDEX)get_global_id(0), row = id / (INDEX)part;
    const int k = (int)(id % (INDEX)part);
    global const T* x = x0 + x0_offset;
    int begin = 0, width = b1;
    TAKE(1, b2)
    TAKE(2, b3)
    TAKE(3, b4)
    TAKE(4, b5)
    TAKE(5, b6)
    TAKE(6, b7)
    TAKE(7, part)
    x += ((ulong)row * width + (k - begin)) * VECTOR;
    y += y_offset + ((ulong)row * line + first + k) * VECTOR;
#if VECTOR == 4
    // vload4 may be four loads where the compiler does not know the alignment.
    if ((((ulong)x | (ulong)y) & (4 * sizeof(T) - 1)) == 0)
        *(global JOIN(T, 4)*)y = *(global const JOIN(T, 4)*)x;
    else
        vstore4(vload4(0, x), 0, y);
#else
    *y = *x;
#endif
}
