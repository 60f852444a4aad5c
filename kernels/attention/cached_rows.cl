// SPDX-License-Identifier: MIT
// attention.cached_rows: attention over caches where a work-item has wide vectors, and as reference anywhere. Each work-item
// computes a part of a block's positions (cached.clh), TILE at a time, without local memory:
//
//                 16 positions     for FEW_ROWS rows and 4 positions: scores = q k^T, first a vector of sums for each pair, which
//               +-------------+         stay in registers, then the sums of the vectors' elements
//     ROWS      |   scores    |    for a tile: rows' maxima, weights = 2^(score - maximum) (online softmax: Milakov and
//     of a head |             |         Gimelshein, 2018)
//               +-------------+         y = y * 2^(old maximum - maximum) + weights v, a vector of features for each row
//
// All rows of a block share the reading of keys and values.
#define TILE 64
#define PART_TILE (4 * TILE)
#define VECTORS (TILE / 16)
#include "attention/cached.clh"
#include "common/mul_add.clh"

#define FEW_ROWS (ROWS < 3 ? ROWS : 3)
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

// Sums of the eight elements of each of four vectors.
INLINE float4 sums_of_four(float8 a, float8 b, float8 c, float8 d) {
    const float8 ab = (float8)(a.lo, b.lo) + (float8)(a.hi, b.hi), cd = (float8)(c.lo, d.lo) + (float8)(c.hi, d.hi);
    const float8 even = (float8)(ab.s0, cd.s0, ab.s1, cd.s1, ab.s4, cd.s4, ab.s5, cd.s5);
    const float8 odd = (float8)(ab.s2, cd.s2, ab.s3, cd.s3, ab.s6, cd.s6, ab.s7, cd.s7);
    const float8 both = even + odd;  // a, c, a, c, b, d, b, d
    return both.s0415 + both.s2637;
}

// Scores of rows [first, first + FEW_ROWS) and the 4 positions from `position` on, to scores[row * TILE + i].
INLINE void score_few(const Block b, global const A_T* keys, const float16* queries, int first, int position, float* scores) {
    float8 sums[FEW_ROWS][4];
    global const A_T* key[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        key[i] = keys + (long)min(position + i, b.end - 1) * DEPTH;
#pragma unroll
        for (int r = 0; r < FEW_ROWS; ++r) sums[r][i] = (float8)(0.0f);
    }
#pragma unroll 4
    for (int v = 0; v < DEPTHS; ++v) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float16 k = load_features(key[i], v, DEPTH);
#pragma unroll
            for (int r = 0; r < FEW_ROWS; ++r) {
                const float16 q = queries[min(first + r, ROWS - 1) * DEPTHS + v];
                sums[r][i] = mul_add(k.hi, q.hi, mul_add(k.lo, q.lo, sums[r][i]));
            }
        }
    }
#pragma unroll
    for (int r = 0; r < FEW_ROWS; ++r)
        if (first + r < ROWS)
            vstore4(sums_of_four(sums[r][0], sums[r][1], sums[r][2], sums[r][3]), 0, scores + (first + r) * TILE);
}

// Scores of all rows, whose queries [row][feature] are given, and the 16 positions from `position` on.
INLINE void score(const Block b, global const A_T* keys, const float16* queries, int position, int capacity, int window,
                  float softcap, float16* scores) {
    for (int i = 0; i < 16; i += 4)
#pragma unroll
        for (int first = 0; first < ROWS; first += FEW_ROWS)
            score_few(b, keys, queries, first, position + i, (float*)scores + i);
    const int16 at = position + (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (int r = 0; r < ROWS; ++r) {
        const int own = position_of(b, r);
        float16 s = scores[r * VECTORS];
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
    float16 queries[ROWS * DEPTHS];
    for (int r = 0; r < ROWS; ++r) {
        const long row = q_offset + row_of(b, length, heads, r) * DEPTH;
        float* const query = (float*)(queries + r * DEPTHS);
        for (int d = 0; d < 16 * DEPTHS; ++d) query[d] = d < DEPTH ? q[row + d] * scale : 0.0f;
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
#pragma unroll
            for (int r = 0; r < ROWS; ++r) sum[r] = results[r * WIDTHS + v] * shrink[r];
            for (int i = 0; i < count; ++i) {
                const float16 value = load_features(values + (long)(position + i) * FEATURES, v, FEATURES);
#pragma unroll
                for (int r = 0; r < ROWS; ++r) sum[r] = mul_add((float16)(weight[r * TILE + i]), value, sum[r]);
            }
#pragma unroll
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
