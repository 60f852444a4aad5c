// SPDX-License-Identifier: MIT
// arg_reduce.reference: the most extreme element of each line, and its position. Element j of line (o, i) lies at
// (o * length + j) * inner + i. A line is divided into `parts` (two of them here):
//
//     step 1 (CPUs)       0 0 0 0 1 1 1 1        each work-item reads memory in order
//     step 2 (GPUs)       0 1 0 1 0 1 0 1        neighbours read neighbouring elements
//
// Define    meaning                                               example
// LARGEST   1: the largest element counts, 0: the smallest        1
// KIND, T, VALUE: see common/element.clh
//
// Local memory: none.
#include "common/element.clh"
#include "common/inline.clh"

// Whether a is more extreme than b: a NaN more than every number, none more than a NaN.
INLINE int is_beyond(VALUE a, VALUE b) {
    if (IS_NAN(b)) return 0;
#if LARGEST
    return IS_NAN(a) || a > b;
#else
    return IS_NAN(a) || a < b;
#endif
}

// Work-item: part p of line (o, i), where its number is (o * parts + p) * inner + i: elements p * begin, one every `step`, of
// the `span` elements from there on. `values` and `positions` are the results, or where there are several parts the
// workspace.
kernel void find_extremes(global const T* x, ulong x_offset, global T* values, ulong values_offset,
                          global long* positions, ulong positions_offset, int has_values, long count, long parts,
                          long length, long inner, long step, long begin, long span) {
    const long item = get_global_id(0);
    if (item >= count) return;
    const long i = item % inner, p = item / inner % parts, o = item / inner / parts;
    const long first = min(p * begin, length - 1), end = min(p * begin + span, length);
    global const T* line = x + x_offset + o * length * inner + i;
    VALUE best = LOAD(line, first * inner);
    long at = first;
    for (long j = first + step; j < end; j += step) {
        const VALUE value = LOAD(line, j * inner);
        if (is_beyond(value, best)) {
            best = value;
            at = j;
        }
    }
    if (has_values) STORE(values + values_offset, item, best);
    positions[positions_offset + item] = at;
}

// Work-item: one line, of whose parts the most extreme element counts, and of equal ones the first.
kernel void choose_extremes(global const T* found, ulong found_offset, global const long* places, ulong places_offset,
                            global T* values, ulong values_offset, global long* positions, ulong positions_offset,
                            int has_values, long count, long parts, long inner) {
    const long line = get_global_id(0);
    if (line >= count) return;
    const long first = line / inner * parts * inner + line % inner;
    VALUE best = LOAD(found + found_offset, first);
    long at = places[places_offset + first];
    for (long p = 1; p < parts; ++p) {
        const VALUE value = LOAD(found + found_offset, first + p * inner);
        const long place = places[places_offset + first + p * inner];
        if (is_beyond(value, best) || (place < at && !is_beyond(best, value))) {
            best = value;
            at = place;
        }
    }
    if (has_values) STORE(values + values_offset, line, best);
    positions[positions_offset + line] = at;
}
