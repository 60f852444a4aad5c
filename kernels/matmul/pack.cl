// SPDX-License-Identifier: MIT
// Packs a matrix into panels for matmul.vector.
//
//     matrix: `count` lines of k steps            panels: [ batch ][ panel ][ k ][ width ]
//        line 0      | . . . . . . |               step 0   | line 0 | line 1 | ... | width - 1 |
//        line 1      | . . . . . . |     ---->     step 1   | line 0 | line 1 | ... | width - 1 |
//        ...                                       ...        zeros where a panel has no line
//
// Element (line, step) of the matrix lies at line * line_step + step * k_step.
//
// The strides of A in matmul/batch.clh are those of the packed matrix, whichever it is.
//
// Work-item: `steps` steps of one panel of one batch. Work-group: one work-item. Local memory: none.

#define PANEL global
#include "matmul/batch.clh"
#include "matmul/pack.clh"

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_pack(
    global const float* from, ulong from_offset, global float* to, ulong to_offset, int count, int k, int width,
    int panels, int steps, long line_step, long k_step, int batch_1, int batch_2, int batch_3, int batch_4,
    int batch_5, long a_0, long a_1, long a_2, long a_3, long a_4, long a_5) {
    const long batch = get_global_id(2);
    const int line = get_global_id(0) * width;
    const int first = get_global_id(1) * steps, last = min(first + steps, k);
    const int lines = min(width, count - line);
    from += from_offset + A_BATCH(batch) + line * line_step + first * k_step;
    to += to_offset + (((ulong)batch * panels + get_global_id(0)) * k + first) * width;
    if (line_step == 1) pack_across(from, k_step, lines, last - first, width, to);
    else pack_along(from, line_step, k_step, lines, last - first, width, to);
}
