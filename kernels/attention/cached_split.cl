// SPDX-License-Identifier: MIT
// attention.cached_split: attention of few queries over long caches on GPUs (Dao et al., "Flash-Decoding", 2023). The positions
// of a head are divided among work-groups (cached.clh), whose results attention_cached_join combines, so that a single query
// keeps all compute units busy. What bounds it is the reading of keys and values, once for all rows of a block:
//
//     work-item    feature 0..3   4..7   8..11   12..15      K_LANES work-items read a key, four features each, so that
//     position 0        0           1      2       3         neighbours read neighbouring memory; K_SLOTS positions at once,
//     position 1        4           5      6       7         four times for a tile. Values likewise by V_LANES and V_SLOTS.
//
// Products of a row and a key are partial sums of the work-items that have read the key. They go through local memory, where
// other work-items add them up. Each slot of values has a maximum, a sum and a result of its own (online softmax) for the
// positions that it has seen, and slots are combined at the end, in their order.
//
// With STEP (CachedStep) each sequence has one new token, whose queries and key are turned here. Its key and value are taken from
// registers in the place of the caches, into which the work-group of its part writes them.
//
// Define       meaning                                                   example
// ITEMS        work-items                                                128
// STEP         see above; else 0                                         0
// INTERLEAVED  with STEP: of attention/turned.clh                        0
//
// Local memory: 4 * (max(TILE * ROWS * (K_LANES + 1), V_SLOTS * ROWS * (FEATURES + 2)) + TILE * ROWS) bytes.
#define K_LANES ((DEPTH + 3) / 4)
#define V_LANES ((FEATURES + 3) / 4)
#define K_SLOTS (ITEMS / K_LANES)
#define V_SLOTS (ITEMS / V_LANES)
#define K_TURNS 4
#define TILE (K_SLOTS * K_TURNS)
#define V_TURNS ((TILE + V_SLOTS - 1) / V_SLOTS)
#include "attention/cached.clh"
#if STEP
#include "attention/turned.clh"
#endif

#define K_STEP (K_LANES + 1)
#define PRODUCTS_SIZE (TILE * ROWS * K_STEP)
#define SLOTS_SIZE (V_SLOTS * ROWS * (FEATURES + 2))

// Features [4 lane, 4 lane + 4) of a row of `features`, with zeros beyond the last.
INLINE float4 load_features(global const A_T* row, int lane, int features) {
    float x[4];
    for (int i = 0; i < 4; ++i) x[i] = 4 * lane + i < features ? A_AT(row, 4 * lane + i) : 0.0f;
    return vload4(0, x);
}
#if A_STORED == 1
#define LOAD_4(p) vload_half4(0, p)
#else
#define LOAD_4(p) vload4(0, p)
#endif
INLINE float4 load_key(global const A_T* row, int lane) {
#if DEPTH % 4 == 0
    return LOAD_4(row + 4 * lane);
#else
    return load_features(row, lane, DEPTH);
#endif
}
INLINE float4 load_value(global const A_T* row, int lane) {
#if FEATURES % 4 == 0
    return LOAD_4(row + 4 * lane);
#else
    return load_features(row, lane, FEATURES);
#endif
}

INLINE float product(float4 a, float4 b) {
    return mad(a.x, b.x, mad(a.y, b.y, mad(a.z, b.z, a.w * b.w)));
}

// What a position has: with STEP, that of the new token is not in the caches yet.
#if STEP
#define AT_POSITION(p, fresh, cached) ((p) == b.start ? (fresh) : (cached))
#else
#define AT_POSITION(p, fresh, cached) (cached)
#endif

#if STEP
// Features [4 lane, 4 lane + 4) of a head of `features`, of which the first are turned, with zeros beyond the last.
INLINE float4 turned_features(global const float* head, int lane, int features, int turned, global const float* cosines,
                              global const float* sines) {
    float x[4];
    for (int i = 0; i < 4; ++i)
        x[i] = 4 * lane + i < features ? turned_feature(head, 4 * lane + i, turned, cosines, sines) : 0.0f;
    return vload4(0, x);
}

// Writes features [4 lane, 4 lane + 4) of a row of a cache.
INLINE void put_features(float4 value, global A_T* row, int lane, int features) {
    float x[4];
    vstore4(value, 0, x);
    for (int i = 0; i < 4; ++i)
        if (4 * lane + i < features) JOIN(stored_put_, A_STORED)(row, 4 * lane + i, x[i]);
}
#endif

// Adds up the partial products of rows and positions of the tile at `position`, and applies the soft cap and what is not seen.
INLINE void add_products(const Block b, local const float* products, local float* scores, int position, int window,
                         float softcap) {
    for (int at = get_local_id(0); at < TILE * ROWS; at += ITEMS) {
        const int r = at % ROWS, p = position + at / ROWS, own = position_of(b, r);
        float s = 0;
        for (int lane = 0; lane < K_LANES; ++lane) s += products[at * K_STEP + lane];
        if (SOFTCAP) s = softcap * tanh(s / softcap);
        scores[at] = p < b.end && p <= own && p >= first_seen(own, window) ? s : -INFINITY;
    }
}

// Combines the slots' results for each row, and writes them.
INLINE void write_rows(const Block b, local const float* slots, int length, int heads, global float* y, global float* made) {
    for (int at = get_local_id(0); at < ROWS * FEATURES; at += ITEMS) {
        const int r = at / FEATURES, e = at % FEATURES;
        if (b.row0 + r >= b.rows) return;
        float most = -INFINITY, sum = 0, weights = 0;
        for (int s = 0; s < V_SLOTS; ++s) most = fmax(most, slots[(s * ROWS + r) * (FEATURES + 2)]);
        const float base = base_of(most);
        for (int s = 0; s < V_SLOTS; ++s) {
            local const float* const of = slots + (s * ROWS + r) * (FEATURES + 2);
            const float factor = exp2(of[0] - base);
            weights = mad(factor, of[1], weights);
            sum = mad(factor, of[2 + e], sum);
        }
        const long row = row_of(b, length, heads, r);
#if PARTS > 1
        global float* const to = made + (row * PARTS + b.part) * (FEATURES + 2);
        to[2 + e] = sum;
        if (e == 0) {
            to[0] = most;
            to[1] = weights;
        }
#else
        y[row * FEATURES + e] = weights == 0 ? 0.0f : sum / weights;
#endif
    }
}

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void attention_cached_split(
    global const float* q, ulong q_offset, global const float* k, ulong k_offset, global const float* v, ulong v_offset,
    global A_T* keys, ulong keys_offset, global A_T* values, ulong values_offset, global const int* places, ulong places_offset,
    global const float* cosines, ulong cosines_offset, global const float* sines, ulong sines_offset, global float* y,
    ulong y_offset, global float* made, ulong made_offset, int length, int heads, int key_heads, int caches, int capacity,
    int window, int blocks, int turned, int table_rows, float scale, float softcap) {
    local float shared[PRODUCTS_SIZE > SLOTS_SIZE ? PRODUCTS_SIZE : SLOTS_SIZE], scores[TILE * ROWS];
    const Block b = block_of(get_group_id(0), places + places_offset, length, heads, key_heads, caches, capacity, window, blocks);
    keys += keys_offset + head_in_cache(b, key_heads, capacity, DEPTH);
    values += values_offset + head_in_cache(b, key_heads, capacity, FEATURES);
    const int id = get_local_id(0);
    const int k_lane = id % K_LANES, k_slot = id / K_LANES, v_lane = id % V_LANES, v_slot = id / V_LANES;
#if STEP
    const long angles = (long)min(b.start, table_rows - 1) * (turned / 2), head = (long)b.batch * key_heads + b.key_head;
    cosines += cosines_offset + angles;
    sines += sines_offset + angles;
    const float4 new_key = turned_features(k + k_offset + head * DEPTH, k_lane, DEPTH, turned, cosines, sines);
    const float4 new_value = turned_features(v + v_offset + head * FEATURES, v_lane, FEATURES, 0, cosines, sines);
    if (b.row0 == 0 && b.begin <= b.start && b.start < b.end) {
        if (k_slot == 0) put_features(new_key, keys + (long)b.start * DEPTH, k_lane, DEPTH);
        if (v_slot == 0) put_features(new_value, values + (long)b.start * FEATURES, v_lane, FEATURES);
    }
#endif
    float4 queries[ROWS], results[ROWS];
    float most[ROWS], sums[ROWS];
    for (int r = 0; r < ROWS; ++r) {
        global const float* const row = q + q_offset + row_of(b, length, heads, r) * DEPTH;
#if STEP
        queries[r] = turned_features(row, k_lane, DEPTH, turned, cosines, sines) * scale;
#else
        float x[4];
        for (int i = 0; i < 4; ++i) x[i] = 4 * k_lane + i < DEPTH ? row[4 * k_lane + i] * scale : 0.0f;
        queries[r] = vload4(0, x);
#endif
        results[r] = (float4)(0.0f);
        most[r] = -INFINITY;
        sums[r] = 0;
    }
    for (int position = b.begin; position < b.end; position += TILE) {
        // Values are asked for together with the keys. What is beyond the end is the last position again.
        float4 value[V_TURNS];
        for (int t = 0; t < V_TURNS; ++t) {
            const int p = min(position + t * V_SLOTS + v_slot, b.end - 1);
            value[t] = AT_POSITION(p, new_value, load_value(values + (long)p * FEATURES, v_lane));
        }
        if (k_slot < K_SLOTS)
            for (int t = 0; t < K_TURNS; ++t) {
                const int at = t * K_SLOTS + k_slot;
                const int p = min(position + at, b.end - 1);
                const float4 key = AT_POSITION(p, new_key, load_key(keys + (long)p * DEPTH, k_lane));
                for (int r = 0; r < ROWS; ++r) shared[(at * ROWS + r) * K_STEP + k_lane] = product(queries[r], key);
            }
        barrier(CLK_LOCAL_MEM_FENCE);
        add_products(b, shared, scores, position, window, softcap);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int r = 0; r < ROWS; ++r) {
            float weights[V_TURNS], largest = most[r];
            for (int t = 0; t < V_TURNS; ++t) {
                const int at = t * V_SLOTS + v_slot;
                weights[t] = v_slot < V_SLOTS && at < TILE ? scores[at * ROWS + r] : -INFINITY;
                largest = fmax(largest, weights[t]);
            }
            const float base = base_of(largest), shrink = exp2(most[r] - base);
            most[r] = largest;
            sums[r] *= shrink;
            results[r] *= shrink;
            for (int t = 0; t < V_TURNS; ++t) {
                const float weight = exp2(weights[t] - base);
                sums[r] += weight;
                results[r] = mad((float4)(weight), value[t], results[r]);
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // nobody reads products any more
    if (v_slot < V_SLOTS)
        for (int r = 0; r < ROWS; ++r) {
            local float* const to = shared + (v_slot * ROWS + r) * (FEATURES + 2);
            if (v_lane == 0) {
                to[0] = most[r];
                to[1] = sums[r];
            }
            float x[4];
            vstore4(results[r], 0, x);
            for (int i = 0; i < 4; ++i)
                if (4 * v_lane + i < FEATURES) to[2 + 4 * v_lane + i] = x[i];
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    write_rows(b, shared, length, heads, y + y_offset, made + made_offset);
}
