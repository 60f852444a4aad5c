// SPDX-License-Identifier: MIT
// nonzero.reference: rows of coordinates of the elements that are wanted. Counts say how many are wanted up to each
// element:
//
//     wanted    0 1 0 0 1 1 0
//     counts    0 1 1 1 2 3 3        row r belongs to the first element whose count is above r: rows 1, 4, 5
//
// Define   meaning                                                  example
// RANK     coordinates of an element: 0 to 8                        2
// STEP     rows that a work-item makes: more on CPUs                1
//
// Local memory: none.

#include "common/inline.clh"

// The first element from `low` on whose count is above r, of which there is one.
INLINE long element_of(global const long* counts, long elements, long low, long r) {
    for (int tries = 0; STEP > 1 && tries < 8; ++tries, ++low)
        if (counts[low] > r) return low;
    long high = elements - 1;
    while (low < high) {
        const long middle = low + (high - low) / 2;
        if (counts[middle] > r)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// Work-item: STEP rows of the result; the first also says how many there are. s0 to s7 are the sizes in which coordinates
// count. Rows behind the last element hold `fill`.
kernel void find_rows(global const long* counts, ulong counts_offset, global long* rows, ulong rows_offset,
                      global long* found, ulong found_offset, long elements, long size, long fill, long s0, long s1,
                      long s2, long s3, long s4, long s5, long s6, long s7) {
    const long begin = (long)get_global_id(0) * STEP, end = min(begin + STEP, size);
    counts += counts_offset;
    const long count = elements > 0 ? counts[elements - 1] : 0;
    if (begin == 0) found[found_offset] = count;
    rows += rows_offset;
    const long sizes[8] = {s0, s1, s2, s3, s4, s5, s6, s7};
    long element = 0;
    for (long r = begin; r < end; ++r) {
        if (r >= count) {
            for (int d = 0; d < RANK; ++d) rows[r * RANK + d] = fill;
            continue;
        }
        element = element_of(counts, elements, element, r);
        long rest = element;
        for (int d = RANK - 1; d >= 0; --d) {
            rows[r * RANK + d] = rest % sizes[d];
            rest /= sizes[d];
        }
    }
}
