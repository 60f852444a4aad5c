// SPDX-License-Identifier: MIT
// attention.online_backward: gradients of attention for any GPU. Scores are computed again from the logarithms of their rows'
// sums (Dao et al.: "FlashAttention", 2022), so that memory grows with the positions:
//
//            INNER rows of the other side at a time
//           +-----------+-----------+--         s  = own1 other1^T, dp = own2 other2^T     CHUNK features at a time
//     ROWS  |  s and dp |           |           p  = 2^(s - lse), ds = p (dp - delta)
//     rows  |           |           |           own1's gradient += ds other1, and of values += p other2
//           +-----------+-----------+--
//
// Of queries (OF_KEYS 0) own1 and own2 are q and dy and the other side k and v; of keys it is the other way round. A work-group
// of 16 x ROWS / 4 work-items computes ROWS rows of a head. A work-item has four rows and every 16th column, of the scores and
// of the gradients. No sum is shared by work-groups.
//
// Define     meaning                                                       example
// OF_KEYS    1: gradients of keys and values; 0: of queries                0
// ROWS       rows of a work-group, a multiple of 4                         32
// INNER      rows of the other side at a time, a multiple of 16            32
// CHUNK      features at a time, a multiple of 16                          32
// DEPTH      features of queries and keys, rounded up to CHUNK             64
// FEATURES   features of values, rounded up to CHUNK                       64
//
// Local memory: 4 * ((ROWS + INNER) * (CHUNK + 1) + ROWS * (INNER + 1)) bytes.
#include "attention/heads.clh"

#define COLUMNS 16
#define RM 4
#define ITEMS (COLUMNS * ROWS / RM)
#define KM (INNER / COLUMNS)
#define CM (CHUNK / COLUMNS)
#define STEP (CHUNK + 1)
#define PAIRS_STEP (INNER + 1)
#define MADE(i, chunk, j, width) ((i) * ((width) / COLUMNS) + (chunk) / COLUMNS + (j))

// A matrix of a head: `rows` of `columns` elements, `step` apart.
typedef struct {
    global const float* from;
    long step;
    int rows, columns;
} Matrix;

INLINE Matrix matrix_of(global const float* from, long step, int rows, int columns) {
    const Matrix matrix = {from, step, rows, columns};
    return matrix;
}

// CHUNK features of `count` rows from row0 on, with zeros beyond the matrix.
INLINE void load_chunk(local float* to, const Matrix matrix, int row0, int count, int chunk, int id) {
    for (int at = id; at < count * CHUNK; at += ITEMS) {
        const int row = at / CHUNK, column = at % CHUNK;
        to[row * STEP + column] = row0 + row < matrix.rows && chunk + column < matrix.columns
                                      ? matrix.from[(row0 + row) * matrix.step + chunk + column]
                                      : 0.0f;
    }
}

// Products of the work-group's own rows and the other side's, over all features.
INLINE void multiply_rows(float* sums, const Matrix own, int own0, local float* own_chunk, const Matrix inner, int inner0,
                          local float* inner_chunk, int width, int id) {
    const int column = id % COLUMNS, first = id / COLUMNS * RM;
    for (int i = 0; i < RM * KM; ++i) sums[i] = 0;
    for (int chunk = 0; chunk < width; chunk += CHUNK) {
        barrier(CLK_LOCAL_MEM_FENCE);  // nobody reads the last ones any more
        load_chunk(own_chunk, own, own0, ROWS, chunk, id);
        load_chunk(inner_chunk, inner, inner0, INNER, chunk, id);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int d = 0; d < CHUNK; ++d)
            for (int j = 0; j < KM; ++j) {
                const float other = inner_chunk[(column + j * COLUMNS) * STEP + d];
                for (int i = 0; i < RM; ++i)
                    sums[i * KM + j] = mad(own_chunk[(first + i) * STEP + d], other, sums[i * KM + j]);
            }
    }
}

// Adds the products of the pairs' numbers and the other side's rows.
INLINE void add_rows(float* made, local const float* pairs, const Matrix inner, int inner0, local float* inner_chunk, int width,
                     int id) {
    const int column = id % COLUMNS, first = id / COLUMNS * RM;
    for (int chunk = 0; chunk < width; chunk += CHUNK) {
        barrier(CLK_LOCAL_MEM_FENCE);
        load_chunk(inner_chunk, inner, inner0, INNER, chunk, id);
        barrier(CLK_LOCAL_MEM_FENCE);  // they are there, and so are the pairs
        float sums[RM * CM];  // of this chunk, in registers
        for (int at = 0; at < RM * CM; ++at) sums[at] = made[MADE(at / CM, chunk, at % CM, width)];
        for (int s = 0; s < INNER; ++s)
            for (int j = 0; j < CM; ++j) {
                const float other = inner_chunk[s * STEP + column + j * COLUMNS];
                for (int i = 0; i < RM; ++i)
                    sums[i * CM + j] = add_weighted(pairs[(first + i) * PAIRS_STEP + s], other, sums[i * CM + j]);
            }
        for (int at = 0; at < RM * CM; ++at) made[MADE(at / CM, chunk, at % CM, width)] = sums[at];
    }
}

INLINE void put_pairs(local float* pairs, const float* numbers, int id) {
    const int column = id % COLUMNS, first = id / COLUMNS * RM;
    for (int i = 0; i < RM; ++i)
        for (int j = 0; j < KM; ++j) pairs[(first + i) * PAIRS_STEP + column + j * COLUMNS] = numbers[i * KM + j];
}

INLINE void put_gradients(global float* to, long step, const float* made, int row0, int rows, int width, int columns, float factor,
                          int id) {
    const int column = id % COLUMNS, first = id / COLUMNS * RM;
    for (int i = 0; i < RM && row0 + first + i < rows; ++i)
        for (int j = 0; j < width / COLUMNS; ++j)
            if (column + j * COLUMNS < columns)
                to[(row0 + first + i) * step + column + j * COLUMNS] = made[MADE(i, 0, j, width)] * factor;
}

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void attention_online_backward(
    global const float* q, ulong q_offset, global const float* k, ulong k_offset, global const float* v, ulong v_offset,
    global const float* dy, ulong dy_offset, global const MASK_T* mask, ulong mask_offset, global const uint2* seed,
    ulong seed_offset, global const uint2* step, ulong step_offset, global const float* lse, ulong lse_offset,
    global const float* delta, ulong delta_offset, global float* d_keys, ulong d_keys_offset, global float* d_values,
    ulong d_values_offset, const Heads given, int depth, long d_keys_0, long d_keys_1, long d_keys_2, long d_keys_row,
    long d_values_0, long d_values_1, long d_values_2, long d_values_row, float scale) {
    local float own_chunk[ROWS * STEP], inner_chunk[INNER * STEP], pairs[ROWS * PAIRS_STEP];
    const Heads sizes = given;
    const Dropout dropout = dropout_of(seed + seed_offset, step + step_offset);
    const int id = get_local_id(0), column = id % COLUMNS, first = id / COLUMNS * RM;
    int head, row0;
    tile_of_group(sizes, OF_KEYS, ROWS, get_group_id(0), &head, &row0);
    const Matrix queries = matrix_of(q + q_offset + head_start(sizes, head, sizes.q_0, sizes.q_1, sizes.q_2), sizes.q_row,
                                     sizes.length, depth);
    const Matrix keys = matrix_of(k + k_offset + head_start(sizes, head, sizes.k_0, sizes.k_1, sizes.k_2), sizes.k_row,
                                  sizes.positions, depth);
    const Matrix values = matrix_of(v + v_offset + head_start(sizes, head, sizes.v_0, sizes.v_1, sizes.v_2), sizes.v_row,
                                    sizes.positions, sizes.features);
    const Matrix results = matrix_of(dy + dy_offset + head_start(sizes, head, sizes.y_0, sizes.y_1, sizes.y_2), sizes.y_row,
                                     sizes.length, sizes.features);
    const Matrix own = OF_KEYS ? keys : queries, inner = OF_KEYS ? queries : keys;
    const Matrix own_values = OF_KEYS ? values : results, inner_values = OF_KEYS ? results : values;
    mask += mask_offset + head_start(sizes, head, sizes.mask_0, sizes.mask_1, sizes.mask_2);
    lse += lse_offset + (long)head * sizes.length;
    delta += delta_offset + (long)head * sizes.length;

    float made[RM * (DEPTH / COLUMNS)];
    for (int i = 0; i < RM * (DEPTH / COLUMNS); ++i) made[i] = 0;
#if OF_KEYS
    float made_values[RM * (FEATURES / COLUMNS)];
    for (int i = 0; i < RM * (FEATURES / COLUMNS); ++i) made_values[i] = 0;
    const int2 range = queries_seeing(sizes, mask, row0, row0 + ROWS);
#else
    const int2 range = positions_seen(sizes, mask, row0, row0 + ROWS);
#endif
    for (int inner0 = range.x; inner0 < range.y; inner0 += INNER) {
        float s[RM * KM], dp[RM * KM];
        multiply_rows(s, own, row0, own_chunk, inner, inner0, inner_chunk, DEPTH, id);
        multiply_rows(dp, own_values, row0, own_chunk, inner_values, inner0, inner_chunk, FEATURES, id);
        for (int i = 0; i < RM; ++i)
            for (int j = 0; j < KM; ++j) {
                const int at = i * KM + j, own_row = row0 + first + i, other = inner0 + column + j * COLUMNS;
                const int query = OF_KEYS ? other : own_row, position = OF_KEYS ? own_row : other;
                const int row = min(query, sizes.length - 1);  // there are zeros beyond the last one
                const float score = capped(sizes, s[at] * scale * LOG2_E);
                const float left = query < sizes.length ? masked(sizes, mask, query, position, score) : -INFINITY;
                // Of other sequences nothing counts, though a row's logarithm may be NaN.
                const float p = left == -INFINITY ? 0.0f : exp2(left - base_of_row(lse[row]));
                const float kept = factor_of(sizes, dropout, head, query, position);
                s[at] = p * kept;
                dp[at] = p == 0 ? 0.0f : p * (dp[at] * kept - delta[row]) * slope_of_cap(sizes, score);
            }
#if OF_KEYS
        put_pairs(pairs, s, id);
        add_rows(made_values, pairs, inner_values, inner0, inner_chunk, FEATURES, id);
        barrier(CLK_LOCAL_MEM_FENCE);  // nobody reads these pairs any more
#endif
        put_pairs(pairs, dp, id);
        add_rows(made, pairs, inner, inner0, inner_chunk, DEPTH, id);
    }
    put_gradients(d_keys + d_keys_offset + head_start(sizes, head, d_keys_0, d_keys_1, d_keys_2), d_keys_row, made, row0, own.rows,
                  DEPTH, depth, scale, id);
#if OF_KEYS
    put_gradients(d_values + d_values_offset + head_start(sizes, head, d_values_0, d_values_1, d_values_2), d_values_row,
                  made_values, row0, own.rows, FEATURES, sizes.features, 1.0f, id);
#endif
}
