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
// Define                   meaning                                            example
// A_BATCH(i), B_BATCH(i)   where the matrices of batch i begin                i * a_batch
// SOURCE_BATCH             which of the two the packed matrix belongs to      B_BATCH
//
// Work-item: PACK_STEPS steps of one panel of one batch. Work-group: one work-item. Local memory: none.

#define PACK_STEPS 64

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_pack(
    global const float* from, ulong from_offset, global float* to, ulong to_offset, int count, int k, int width,
    long line_step, long k_step, long a_batch, long b_batch) {
    const long batch = get_global_id(2);
    const int line = get_global_id(0) * width;
    const int first = get_global_id(1) * PACK_STEPS, last = min(first + PACK_STEPS, k);
    const int lines = min(width, count - line);
    from += from_offset + SOURCE_BATCH(batch) + line * line_step;
    to += to_offset + ((ulong)batch * get_global_size(0) + get_global_id(0)) * width * k;
    if (line_step == 1) {
        for (int p = first; p < last; ++p) {
            global const float* source = from + p * k_step;
            global float* target = to + (long)p * width;
            int i = 0;
            for (; i + 4 <= lines; i += 4) vstore4(vload4(0, source + i), 0, target + i);
            for (; i < lines; ++i) target[i] = source[i];
            for (; i < width; ++i) target[i] = 0.0f;
        }
        return;
    }
    for (int begin = first; begin < last; begin += 16) {
        const int end = min(begin + 16, last);
        for (int i = 0; i < lines; ++i) {
            global const float* source = from + i * line_step;
            for (int p = begin; p < end; ++p) to[(long)p * width + i] = source[p * k_step];
        }
        for (int i = lines; i < width; ++i)
            for (int p = begin; p < end; ++p) to[(long)p * width + i] = 0.0f;
    }
}
