// SPDX-License-Identifier: MIT
// attention.cached_rows: attention over caches where a work-item has wide vectors, and as reference anywhere. Each work-item
// computes a part of a block's positions (cached.clh), TILE at a time, without local memory:
//
//                 16 positions     for 16 positions: their keys are transposed, so that a vector has one feature of all of them
//               +-------------+         scores = q k^T, a vector of positions for each row
//     ROWS      |   scores    |    for a tile: rows' maxima, weights = 2^(score - maximum) (online softmax: Milakov and
//     of a head |             |         Gimelshein, 2018)
//               +-------------+         y = y * 2^(old maximum - maximum) + weights v, a vector of features for each row
//
// All rows of a block share the reading of keys and values.
#define TILE 64
#define PART_TILE (4 * TILE)
#define VECTORS (TILE / 16)
#include "attention/cached.clh"

#define DEPTHS ((DEPTH + 15) / 16)
#define WIDTHS ((FEATURES + 15) / 16)

#if A_STORED == 1
#define LOAD_16(p) vload_half16(0, p)
#else
#define LOAD_16(p) vload16(0, p)
#endif

// Features [16 v, 16 v + 16) of a row of `features`, with zeros beyond the last.
INLINE float16 load_features(global const A_T* row, int v, int features) {
    if (16 * v + 16 <= features) return LOAD_16(row + 16 * v);
    float lanes[16];
    for (int i = 0; i < 16; ++i) lanes[i] = 16 * v + i < features ? A_AT(row, 16 * v + i) : 0.0f;
    return vload16(0, lanes);
}

INLINE float16 lower_pairs(float16 a, float16 b) {
    return (float16)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3, a.s4, b.s4, a.s5, b.s5, a.s6, b.s6, a.s7, b.s7);
}
INLINE float16 upper_pairs(float16 a, float16 b) {
    return (float16)(a.s8, b.s8, a.s9, b.s9, a.sa, b.sa, a.sb, b.sb, a.sc, b.sc, a.sd, b.sd, a.se, b.se, a.sf, b.sf);
}

// Transposes a matrix of 16 vectors: four times, pairs of elements of rows i and i + 8 become rows 2 i and 2 i + 1.
INLINE void transpose(float16* x) {
    float16 t[16];
    for (int turn = 0; turn < 2; ++turn) {
        for (int i = 0; i < 8; ++i) {
            t[2 * i] = lower_pairs(x[i], x[i + 8]);
            t[2 * i + 1] = upper_pairs(x[i], x[i + 8]);
        }
        for (int i = 0; i < 8; ++i) {
            x[2 * i] = lower_pairs(t[i], t[i + 8]);
            x[2 * i + 1] = upper_pairs(t[i], t[i + 8]);
        }
    }
}

INLINE float largest_of(float16 x) {
    const float8 a = fmax(x.lo, x.hi);
    const float4 b = fmax(a.lo, a.hi);
    const float2 c = fmax(b.lo, b.hi);
    return fmax(c.x, c.y);
}
INLINE float sum_of(float16 x) {
    const float8 a = x.lo + x.hi;
    const float4 b = a.lo + a.hi;
    const float2 c = b.lo + b.hi;
    return c.x + c.y;
}

// Scores of all rows, whose queries [feature][row] are given, and the 16 positions from `position` on.
INLINE void score(const Block b, global const A_T* keys, const float* queries, int position, int capacity, int window,
                  float softcap, float16* scores) {
    float16 sums[ROWS];
    for (int r = 0; r < ROWS; ++r) sums[r] = (float16)(0.0f);
    for (int v = 0; v < DEPTHS; ++v) {
        float16 x[16];
        for (int i = 0; i < 16; ++i) x[i] = load_features(keys + (long)min(position + i, b.end - 1) * DEPTH, v, DEPTH);
        transpose(x);
        for (int d = 0; d < 16; ++d)
            for (int r = 0; r < ROWS; ++r) sums[r] = mad((float16)(queries[(16 * v + d) * ROWS + r]), x[d], sums[r]);
    }
    const int16 at = position + (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (int r = 0; r < ROWS; ++r) {
        const int own = position_of(b, r);
        float16 s = sums[r];
        if (SOFTCAP) s = softcap * tanh(s / softcap);
        const int16 seen = at <= own && at < b.end && at >= first_seen(own, window);
        scores[r * VECTORS] = select((float16)(-INFINITY), s, seen);
    }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void attention_cached_rows(
    global const float* q, ulong q_offset, global const A_T* keys, ulong keys_offset, global const A_T* values,
    ulong values_offset, global const int* places, ulong places_offset, global float* y, ulong y_offset, global float* made,
    ulong made_offset, int length, int heads, int key_heads, int caches, int capacity, int window, int blocks, float scale,
    float softcap) {
    const Block b = block_of(get_group_id(0), places + places_offset, length, heads, key_heads, caches, capacity, window, blocks);
    keys += keys_offset + head_in_cache(b, key_heads, capacity, DEPTH);
    values += values_offset + head_in_cache(b, key_heads, capacity, FEATURES);
    float queries[16 * DEPTHS * ROWS];
    for (int r = 0; r < ROWS; ++r) {
        const long row = q_offset + row_of(b, length, heads, r) * DEPTH;
        for (int d = 0; d < 16 * DEPTHS; ++d) queries[d * ROWS + r] = d < DEPTH ? q[row + d] * scale : 0.0f;
    }
    float most[ROWS], sums[ROWS];
    float16 results[ROWS * WIDTHS];
    for (int r = 0; r < ROWS; ++r) {
        most[r] = -INFINITY;
        sums[r] = 0;
        for (int v = 0; v < WIDTHS; ++v) results[r * WIDTHS + v] = (float16)(0.0f);
    }
    for (int position = b.begin; position < b.end; position += TILE) {
        float16 weights[ROWS * VECTORS];
        for (int i = 0; i < ROWS * VECTORS; ++i) weights[i] = (float16)(-INFINITY);
        for (int v = 0; v < VECTORS && position + 16 * v < b.end; ++v)
            score(b, keys, queries, position + 16 * v, capacity, window, softcap, weights + v);
        float shrink[ROWS];
        for (int r = 0; r < ROWS; ++r) {
            float16 most_of = weights[r * VECTORS];
            for (int v = 1; v < VECTORS; ++v) most_of = fmax(most_of, weights[r * VECTORS + v]);
            const float largest = fmax(most[r], largest_of(most_of)), base = base_of(largest);
            shrink[r] = exp2(most[r] - base);
            most[r] = largest;
            float16 sum = (float16)(0.0f);
            for (int v = 0; v < VECTORS; ++v) sum += weights[r * VECTORS + v] = exp2(weights[r * VECTORS + v] - base);
            sums[r] = sums[r] * shrink[r] + sum_of(sum);
        }
        const float* const weight = (const float*)weights;
        const int count = min(TILE, b.end - position);
        for (int v = 0; v < WIDTHS; ++v) {
            float16 sum[ROWS];
            for (int r = 0; r < ROWS; ++r) sum[r] = results[r * WIDTHS + v] * shrink[r];
            for (int i = 0; i < count; ++i) {
                const float16 value = load_features(values + (long)(position + i) * FEATURES, v, FEATURES);
                for (int r = 0; r < ROWS; ++r) sum[r] = mad((float16)(weight[r * TILE + i]), value, sum[r]);
            }
            for (int r = 0; r < ROWS; ++r) results[r * WIDTHS + v] = sum[r];
        }
    }
    for (int r = 0; r < ROWS && b.row0 + r < b.rows; ++r) {
        const long row = row_of(b, length, heads, r);
        const float* const result = (const float*)(results + r * WIDTHS);
#if PARTS > 1
        global float* const to = made + made_offset + (row * PARTS + b.part) * (FEATURES + 2);
        to[0] = most[r];
        to[1] = sums[r];
        for (int e = 0; e < FEATURES; ++e) to[2 + e] = result[e];
#else
        for (int e = 0; e < FEATURES; ++e) y[y_offset + row * FEATURES + e] = sums[r] == 0 ? 0.0f : result[e] / sums[r];
#endif
    }
}
