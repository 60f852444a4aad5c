// SPDX-License-Identifier: MIT
// arg_reduce.reference: the most extreme element of each line, and its position. Element j of line (o, i) lies at
// (o * length + j) * inner + i. A line is divided into `parts` (two of them here):
//
//     step 1 (CPUs)       0 0 0 0 1 1 1 1        each work-item reads memory in order
//     step 2 (GPUs)       0 1 0 1 0 1 0 1        neighbours read neighbouring elements
//
// Define    meaning                                               example
// LARGEST   1: the largest element counts, 0: the smallest        1
// LANES     elements that a work-item compares side by side: more on CPUs, for their vectors    16
// KIND, T, VALUE: see common/compared_element.clh
//
// Local memory: none.
#include "common/compared_element.clh"
#include "common/inline.clh"

// Whether a is more extreme than b: a NaN more than every number, none more than a NaN.
INLINE int is_beyond(VALUE a, VALUE b) {
    if (is_nan(b)) return 0;
#if LARGEST
    return is_nan(a) || a > b;
#else
    return is_nan(a) || a < b;
#endif
}

// Takes another element if it is more extreme or, where they are equal, in front.
INLINE void prefer(VALUE* best, long* at, VALUE value, long place) {
    if (is_beyond(value, *best) || (place < *at && !is_beyond(*best, value))) {
        *best = value;
        *at = place;
    }
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
    const long apart = step * inner, elements = (end - first + step - 1) / step, rounds = elements / LANES;
    line += first * inner;
    VALUE best = load_element(line, 0);
    long at = 0, next = 1;
    if (LANES > 1 && rounds > 1) {
        VALUE bests[LANES];
        int at_round[LANES];
        for (int l = 0; l < LANES; ++l) {
            bests[l] = load_element(line, l * apart);
            at_round[l] = 0;
        }
        for (int r = 1; r < rounds; ++r)
            for (int l = 0; l < LANES; ++l) {
                const VALUE value = load_element(line, ((long)r * LANES + l) * apart);
                const int is_next = is_beyond(value, bests[l]);
                bests[l] = is_next ? value : bests[l];
                at_round[l] = is_next ? r : at_round[l];
            }
        for (int l = 0; l < LANES; ++l) prefer(&best, &at, bests[l], (long)at_round[l] * LANES + l);
        next = rounds * LANES;
    }
    for (; next < elements; ++next) {
        const VALUE value = load_element(line, next * apart);
        if (is_beyond(value, best)) {
            best = value;
            at = next;
        }
    }
    at = first + at * step;
    if (has_values) store_element(values + values_offset, item, best);
    positions[positions_offset + item] = at;
}

// Work-item: one line, of whose parts the most extreme element counts, and of equal ones the first.
kernel void choose_extremes(global const T* found, ulong found_offset, global const long* places, ulong places_offset,
                            global T* values, ulong values_offset, global long* positions, ulong positions_offset,
                            int has_values, long count, long parts, long inner) {
    const long line = get_global_id(0);
    if (line >= count) return;
    const long first = line / inner * parts * inner + line % inner;
    VALUE best = load_element(found + found_offset, first);
    long at = places[places_offset + first];
    for (long p = 1; p < parts; ++p) {
        const VALUE value = load_element(found + found_offset, first + p * inner);
        prefer(&best, &at, value, places[places_offset + first + p * inner]);
    }
    if (has_values) store_element(values + values_offset, line, best);
    positions[positions_offset + line] = at;
}
