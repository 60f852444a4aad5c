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
// Work-item: `steps` steps of one panel of one batch. Work-group: one work-item. Local memory: none.

#include "common/prefetch.clh"

// A block is as many steps as a cache line holds. A line's block is prefetched this many blocks ahead, because the lines
// are apart in memory and each is read for a short time.
#define AHEAD_BLOCKS 4

// Transposes 4 steps of 4 lines. `step` is the distance of steps in panels.
inline void pack_four(global const float* from, long line_step, global float* to, int step) {
    const float4 a = vload4(0, from), b = vload4(0, from + line_step), c = vload4(0, from + 2 * line_step),
                 d = vload4(0, from + 3 * line_step);
    vstore4((float4)(a.s0, b.s0, c.s0, d.s0), 0, to);
    vstore4((float4)(a.s1, b.s1, c.s1, d.s1), 0, to + step);
    vstore4((float4)(a.s2, b.s2, c.s2, d.s2), 0, to + 2 * step);
    vstore4((float4)(a.s3, b.s3, c.s3, d.s3), 0, to + 3 * step);
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_pack(
    global const float* from, ulong from_offset, global float* to, ulong to_offset, int count, int k, int width,
    int panels, int steps, long line_step, long k_step, long a_batch, long b_batch) {
    const long batch = get_global_id(2);
    const int line = get_global_id(0) * width;
    const int first = get_global_id(1) * steps, last = min(first + steps, k);
    const int lines = min(width, count - line);
    from += from_offset + SOURCE_BATCH(batch) + line * line_step;
    to += to_offset + ((ulong)batch * panels + get_global_id(0)) * width * k;
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
    for (int begin = first; begin < last; begin += LINE_FLOATS) {
        const int end = min(begin + LINE_FLOATS, last);
        int i = 0;
        if (k_step == 1) {
            for (; i + 4 <= lines; i += 4) {
                global const float* source = from + i * line_step;
                for (int l = 0; l < 4; ++l) prefetch_line(source + l * line_step + begin + AHEAD_BLOCKS * LINE_FLOATS);
                int p = begin;
                for (; p + 4 <= end; p += 4) pack_four(source + p, line_step, to + (long)p * width + i, width);
                for (; p < end; ++p)
                    for (int l = 0; l < 4; ++l) to[(long)p * width + i + l] = source[l * line_step + p];
            }
        }
        for (; i < lines; ++i) {
            global const float* source = from + i * line_step;
            for (int p = begin; p < end; ++p) to[(long)p * width + i] = source[p * k_step];
        }
        for (; i < width; ++i)
            for (int p = begin; p < end; ++p) to[(long)p * width + i] = 0.0f;
    }
}
