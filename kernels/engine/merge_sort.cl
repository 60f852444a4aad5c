// SPDX-License-Identifier: MIT
// Passes of the merge sort in src/engine/sort/merge_sort.hpp. A line of keys consists of sorted runs side by side:
//
//     before   | run 0     | run 1     | run 2     | last |
//     after    | merged 0              | merged 1         |     each cut to its first `merged_run` elements
//
// Define   meaning                                                     example
// KEY      type of a key: uint or ulong                                uint
// RUN      keys that a work-item of sort_runs sorts                    8
// PIECE    merged elements that a work-item makes: more on CPUs        8
//
// Local memory: none.

// Sorts runs of RUN keys by insertion, and keeps the first `run` of each. Work-item: one run of the `runs` of a line. A line
// of `keys` has `length` elements, one of the result `line`.
kernel void sort_runs(global const KEY* keys, ulong keys_offset, global KEY* sorted, ulong sorted_offset,
                      global int* positions, ulong positions_offset, long runs, long count, long length, long run,
                      long line) {
    const long item = get_global_id(0);
    if (item >= count) return;
    const long row = item / runs, begin = item % runs * RUN;
    const int size = (int)min((long)RUN, length - begin);
    KEY key[RUN];
    int position[RUN];
    keys += keys_offset + row * length + begin;
    for (int i = 0; i < size; ++i) {
        const KEY k = keys[i];
        int at = i;
        for (; at > 0 && key[at - 1] > k; --at) {
            key[at] = key[at - 1];
            position[at] = position[at - 1];
        }
        key[at] = k;
        position[at] = (int)begin + i;
    }
    const long to = row * line + item % runs * run;
    const int kept = (int)min((long)size, run);
    for (int i = 0; i < kept; ++i) {
        sorted[sorted_offset + to + i] = key[i];
        positions[positions_offset + to + i] = position[i];
    }
}

// Merges pairs of runs. Work-item: PIECE elements of the result, whose beginnings in both runs are where the merge path
// crosses their diagonal: i keys of the first run are among the first d of the result.
kernel void merge_runs(global const KEY* keys, ulong keys_offset, global const int* positions, ulong positions_offset,
                       global KEY* merged, ulong merged_offset, global int* merged_positions,
                       ulong merged_positions_offset, long count, long pieces, long pairs, long line, long run,
                       long merged_line, long merged_run) {
    const long item = get_global_id(0);
    if (item >= count) return;
    const long pair = item / pieces % pairs, row = item / pieces / pairs;
    const long a_begin = pair * 2 * run, b_begin = min(a_begin + run, line);
    const long a_size = min(run, line - a_begin), b_size = min(run, line - b_begin);
    const long first = item % pieces * PIECE, last = min(min(first + PIECE, merged_run), a_size + b_size);
    if (first >= last) return;
    global const KEY* a = keys + keys_offset + row * line + a_begin;
    global const KEY* b = keys + keys_offset + row * line + b_begin;
    global const int* at_a = positions + positions_offset + row * line + a_begin;
    global const int* at_b = positions + positions_offset + row * line + b_begin;
    long low = max(0L, first - b_size), high = min(first, a_size);
    while (low < high) {
        const long middle = (low + high) / 2;
        if (a[middle] <= b[first - 1 - middle])
            low = middle + 1;
        else
            high = middle;
    }
    long i = low, j = first - low;
    const long to = row * merged_line + pair * merged_run;
    global KEY* out = merged + merged_offset + to;
    global int* at_out = merged_positions + merged_positions_offset + to;
    for (long k = first; k < last; ++k) {
        const int takes_a = j >= b_size || (i < a_size && a[i] <= b[j]);
        out[k] = takes_a ? a[i] : b[j];
        at_out[k] = takes_a ? at_a[i] : at_b[j];
        i += takes_a;
        j += !takes_a;
    }
}
