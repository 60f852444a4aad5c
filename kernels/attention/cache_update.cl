// SPDX-License-Identifier: MIT
// CacheUpdate: writes keys and values of new tokens into their caches, and turns queries and keys by the tokens' positions (Su
// et al., "RoFormer", 2021; src/ops/attention/cache.hpp has the operands).
//
// A work-group of LANES work-items has one head of a token: of queries, of keys or of values.
//
// Define       meaning                                                  example
// LANES        work-items                                               64
// INTERLEAVED  of attention/turned.clh                                  0
// C_STORED     type of the caches (common/storage.clh)                  0
#include "common/inline.clh"
#include "common/storage.clh"
#include "attention/turned.clh"

kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void attention_cache_update(
    global const float* q, ulong q_offset, global const float* k, ulong k_offset, global const float* v, ulong v_offset,
    global C_T* keys, ulong keys_offset, global C_T* values, ulong values_offset, global const int* places, ulong places_offset,
    global const float* cosines, ulong cosines_offset, global const float* sines, ulong sines_offset, global float* y,
    ulong y_offset, int length, int heads, int key_heads, int depth, int features, int caches, int capacity, int turned,
    int table_rows) {
    const int all = heads + 2 * key_heads, token = get_group_id(0) / all;
    int head = get_group_id(0) % all;
    places += places_offset + 2 * (token / length);
    const int cache = clamp(places[0], 0, caches - 1);
    const int position = clamp(places[1], 0, capacity - 1) + token % length;
    const long row = (long)min(position, table_rows - 1) * (turned / 2);
    cosines += cosines_offset + row;
    sines += sines_offset + row;
    if (head < heads) {
        const long at = ((long)token * heads + head) * depth;
        for (int d = get_local_id(0); d < depth; d += LANES)
            y[y_offset + at + d] = turned_feature(q + q_offset + at, d, turned, cosines, sines);
        return;
    }
    if (position >= capacity) return;
    head -= heads;
    const int of_values = head >= key_heads;
    if (of_values) head -= key_heads;
    const long to = ((long)cache * key_heads + head) * capacity + position;
    if (of_values) {
        v += v_offset + ((long)token * key_heads + head) * features;
        for (int e = get_local_id(0); e < features; e += LANES) C_PUT(values + values_offset, to * features + e, v[e]);
    } else {
        k += k_offset + ((long)token * key_heads + head) * depth;
        for (int d = get_local_id(0); d < depth; d += LANES)
            C_PUT(keys + keys_offset, to * depth + d, turned_feature(k, d, turned, cosines, sines));
    }
}
