// SPDX-License-Identifier: MIT
// embedding.reference and embedding_backward.reference: looks up rows of a table by index, and computes the table's gradient.
//
// Define   meaning               example
// INDEX    type of an index      int
// and those of common/element.clh: the table is of float or double.
//
// Local memory: none.
#include "common/element.clh"
#include "engine/refuse.clh"

// Work-item: copies one element. An index that names no row reads the nearest one, and is refused.
kernel void embedding_forward(global const INDEX* indices, ulong indices_offset, global const A_T* weight,
                              ulong weight_offset, global C_T* y, ulong y_offset, long count, long rows, long dim,
                              global long* refused, int refused_by) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const long place = at / dim, given = (long)indices[indices_offset + place];
    if (given < 0 || given >= rows) refuse_index(refused, refused_by, given, place, rows, 0);
    const long row = clamp(given, 0L, rows - 1);
    y[y_offset + at] = weight[weight_offset + row * dim + at % dim];
}

// Gathers the gradient. Work-item (d, block) owns features d, d + lanes, ... of `block_rows` rows of the table, where
// `lanes` is the number of work-items in dimension 0. It scans all indices in order, so the order of every sum is
// fixed. An index that names no row has no part in any sum, and is refused.
kernel void embedding_backward(global const INDEX* indices, ulong indices_offset, global const A_T* dy,
                               ulong dy_offset, global C_T* dw, ulong dw_offset, long rows, long dim, long count,
                               long block_rows, long padding, global long* refused, int refused_by) {
    const long lane = get_global_id(0), lanes = get_global_size(0);
    const long first = get_global_id(1) * block_rows, last = min(first + block_rows, rows);
    indices += indices_offset;
    dy += dy_offset;
    dw += dw_offset;
    for (long row = first; row < last; ++row)
        for (long d = lane; d < dim; d += lanes) dw[row * dim + d] = 0;
    for (long i = 0; i < count; ++i) {
        const long row = (long)indices[i];
        if (row < 0 || row >= rows) refuse_index(refused, refused_by, row, i, rows, 0);
        if (row < first || row >= last || row == padding) continue;
        for (long d = lane; d < dim; d += lanes) dw[row * dim + d] += dy[i * dim + d];
    }
}
