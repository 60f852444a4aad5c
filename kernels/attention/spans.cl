// SPDX-License-Identifier: MIT
// Spans of attention whose sequences lie behind each other (src/ops/attention/spans.hpp): an int4 for each of `length` queries,
// then for each of `positions` positions. Sequence n has the queries [lengths[n], lengths[n + 1]) and the positions that
// lengths + keys_row says likewise.
//
// Define        meaning                                                              example
// INDEX         type of a length: int or long                                        int
// LOWER_RIGHT   1: a sequence's last query stands at its last position; 0: its first one at its first   0
//
// Local memory: none. Lengths that fall, or do not begin with 0 and end with the number of rows, are refused; spans then hold
// anything within the rows.
#include "engine/refuse.clh"

// Work-item i: span i, and the check of length i.
kernel void attention_spans(global const INDEX* lengths, ulong lengths_offset, global int4* spans, ulong spans_offset, int length,
                            int positions, int sequences, int keys_row, global long* refused, int refused_by) {
    const int at = get_global_id(0);
    lengths += lengths_offset;
    if (at <= sequences || (keys_row > 0 && at < 2 * keys_row)) {
        const int n = at <= sequences ? at : at - keys_row, rows = at <= sequences ? length : positions;
        const long own = lengths[at];
        if (own < (n == 0 ? 0 : lengths[at - 1]) || own > rows || (n == 0 && own != 0) || (n == sequences && own != rows))
            refuse_index(refused, refused_by, own, at, rows, 2);
    }
    if (at >= length + positions) return;
    const int of_key = at >= length, row = of_key ? at - length : at;
    global const INDEX* const own = lengths + (of_key ? keys_row : 0);
    int first = 0;  // of the sequences that may have the row
    for (int count = sequences; count > 1;) {
        const int half_count = count / 2;
        if (own[first + half_count] <= row) {
            first += half_count;
            count -= half_count;
        } else {
            count = half_count;
        }
    }
    global const INDEX *const queries = lengths + first, *const keys = lengths + keys_row + first;
    const int query = (int)clamp((long)queries[0], 0L, (long)length);
    const int query_end = (int)clamp((long)queries[1], (long)query, (long)length);
    const int key = (int)clamp((long)keys[0], 0L, (long)positions);
    const int key_end = (int)clamp((long)keys[1], (long)key, (long)positions);
    const int place = LOWER_RIGHT ? key_end - query_end : key - query;
    spans[spans_offset + at] = of_key ? (int4)(query, query_end, place, 0) : (int4)(key, key_end, place, 0);
}
