// SPDX-License-Identifier: MIT
// embedding_backward.grouped: the gradient of an embedding's table on GPUs.
//
//             features ->
//           +-------+-------+--      A work-group has ROWS rows of the table and ITEMS features, one of them per work-item.
//     ROWS  |       |       |        It reads all indices, ITEMS at a time, into local memory, and goes through them in
//           +-------+-------+--      order: the order of every sum is fixed.
//
// The sum of a row stays in a register while the same row follows, so that a word which many texts are padded with costs
// no trip to memory per repetition.
//
// Define   meaning                                          example
// INDEX    type of an index                                 int
// ITEMS    work-items of a work-group                       256
// ROWS     rows of a work-group                             128
// and those of common/element.clh: the table is of float or double.
//
// Local memory: 4 * ITEMS bytes.
#include "common/element.clh"
#include "common/inline.clh"
#include "engine/refuse.clh"

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void embedding_backward(
    global const INDEX* indices, ulong indices_offset, global const A_T* dy, ulong dy_offset, global C_T* dw, ulong dw_offset,
    long rows, long dim, long count, long padding, int blocks, global long* refused, int refused_by) {
    local int found[ITEMS];  // the row within the work-group's, or -1
    const int id = get_local_id(0), block = get_group_id(0) % blocks;
    const long first = (long)block * ROWS, d = (long)(get_group_id(0) / blocks) * ITEMS + id;
    const int last = (int)min(rows - first, (long)ROWS);
    const int has_feature = d < dim;
    indices += indices_offset;
    dy += dy_offset + d;
    dw += dw_offset + first * dim + d;
    for (int row = 0; row < last && has_feature; ++row) dw[row * dim] = 0;
    int current = -1;
    C_T sum = 0;
    for (long start = 0; start < count; start += ITEMS) {
        barrier(CLK_LOCAL_MEM_FENCE);
        long row = -1;
        if (start + id < count) {
            row = (long)indices[start + id];
            if (row < 0 || row >= rows) refuse_index(refused, refused_by, row, start + id, rows, 0);
            row = row == padding ? -1 : row - first;
        }
        found[id] = row >= 0 && row < last ? (int)row : -1;
        barrier(CLK_LOCAL_MEM_FENCE);
        const int here = (int)min(count - start, (long)ITEMS);
        for (int i = 0; i < here && has_feature; ++i) {
            const int next = found[i];
            if (next < 0) continue;
            if (next != current) {
                if (current >= 0) dw[current * dim] = sum;
                current = next;
                sum = dw[current * dim];
            }
            sum += dy[(start + i) * dim];
        }
    }
    if (current >= 0) dw[current * dim] = sum;
}
