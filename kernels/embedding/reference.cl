// SPDX-License-Identifier: MIT
// embedding.reference: rows of a table by number, and the gradient of the table.
// Defines: INDEX (the type of an index). Local memory: none.

// A work-item copies one element.
kernel void embedding_forward(global const INDEX* indices, ulong indices_offset, global const float* weight,
                              ulong weight_offset, global float* y, ulong y_offset, long count, long rows, long dim) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const long row = clamp((long)indices[indices_offset + at / dim], 0L, rows - 1);
    y[y_offset + at] = weight[weight_offset + row * dim + at % dim];
}

// Gathers: work-item (d, block) owns feature d.. of `block_rows` rows of the table, LANES features apart, and
// scans all indices for them in order, so that every sum has one order.
kernel void embedding_backward(global const INDEX* indices, ulong indices_offset, global const float* dy,
                               ulong dy_offset, global float* dw, ulong dw_offset, long rows, long dim, long count,
                               long block_rows, long padding) {
    const long lane = get_global_id(0), lanes = get_global_size(0);
    const long first = get_global_id(1) * block_rows, last = min(first + block_rows, rows);
    indices += indices_offset;
    dy += dy_offset;
    dw += dw_offset;
    for (long row = first; row < last; ++row)
        for (long d = lane; d < dim; d += lanes) dw[row * dim + d] = 0.0f;
    for (long i = 0; i < count; ++i) {
        const long row = (long)indices[i];
        if (row < first || row >= last || row == padding) continue;
        for (long d = lane; d < dim; d += lanes) dw[row * dim + d] += dy[i * dim + d];
    }
}
