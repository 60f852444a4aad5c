// SPDX-License-Identifier: MIT
// nonzero.reference: rows of coordinates of the elements that are wanted. Counts say how many are wanted up to each
// element:
//
//     wanted    0 1 0 0 1 1 0
//     counts    0 1 1 1 2 3 3        row r belongs to the first element whose count is above r: rows 1, 4, 5
//
// Define   meaning                                                  example
// RANK     coordinates of an element: 0 to 8                        2
//
// Local memory: none.

// Work-item: one row of the result; the first also says how many there are. s0 to s7 are the sizes in which coordinates
// count. Rows behind the last element hold `fill`.
kernel void find_rows(global const long* counts, ulong counts_offset, global long* rows, ulong rows_offset,
                      global long* found, ulong found_offset, long elements, long size, long fill, long s0, long s1,
                      long s2, long s3, long s4, long s5, long s6, long s7) {
    const long r = get_global_id(0);
    counts += counts_offset;
    const long count = elements > 0 ? counts[elements - 1] : 0;
    if (r == 0) found[found_offset] = count;
    if (r >= size) return;
    rows += rows_offset + r * RANK;
    if (r >= count) {
        for (int d = 0; d < RANK; ++d) rows[d] = fill;
        return;
    }
    long low = 0, high = elements - 1;
    while (low < high) {
        const long middle = low + (high - low) / 2;
        if (counts[middle] > r)
            high = middle;
        else
            low = middle + 1;
    }
    const long sizes[8] = {s0, s1, s2, s3, s4, s5, s6, s7};
    for (int d = RANK - 1; d >= 0; --d) {
        rows[d] = low % sizes[d];
        low /= sizes[d];
    }
}
