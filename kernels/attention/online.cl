// SPDX-License-Identifier: MIT
// attention.online: attention for any GPU. The softmax is computed while it goes through the positions (Milakov and
// Gimelshein: "Online normalizer calculation for softmax", 2018; Dao et al.: "FlashAttention", 2022), so that scores are
// never in memory.
//
//            KEYS positions at a time
//           +-----------+-----------+--            for each: scores = q k^T, their rows' maxima, weights = 2^(score - maximum),
//     ROWS  |  scores   |           |              y = y * 2^(old maximum - maximum) + weights v
//   queries |           |           |
//           +-----------+-----------+--            and at the end y / sum of the weights
//
// A work-group of 16 x ROWS / 4 work-items computes ROWS queries of a head. A work-item has four rows and every 16th column,
// of the scores and of y.
//
// Define     meaning                                                       example
// ROWS       queries of a work-group, a multiple of 4                      32
// KEYS       positions at a time, a multiple of 16                         32
// DEPTH      features of queries and keys, rounded up to 16                64
// FEATURES   features of values, rounded up to 16                          64
//
// Local memory: 4 * (ROWS * (DEPTH + 1) + KEYS * max(DEPTH + 1, FEATURES) + ROWS * (KEYS + 1) + ROWS * 17) bytes.
#include "attention/heads.clh"

#define COLUMNS 16
#define RM 4
#define ITEMS (COLUMNS * ROWS / RM)
#define KM (KEYS / COLUMNS)
#define FM (FEATURES / COLUMNS)
#define ROW_STEP (DEPTH + 1)
#define KEYS_SIZE (KEYS * (ROW_STEP > FEATURES ? ROW_STEP : FEATURES))

// Rows row0 and further of a matrix of `rows` by `columns`, from_step apart, with zeros beyond it, as `count` rows of `width`,
// `step` apart.
INLINE void load_rows(local float* to, int step, global const float* from, long from_step, int row0, int rows, int columns,
                      int count, int width, int id) {
    for (int at = id; at < count * width; at += ITEMS) {
        const int row = at / width, column = at % width;
        to[row * step + column] =
            row0 + row < rows && column < columns ? from[(row0 + row) * from_step + column] : 0.0f;
    }
}

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void attention_online(
    global const float* q, ulong q_offset, global const float* k, ulong k_offset, global const float* v, ulong v_offset,
    global const MASK_T* mask, ulong mask_offset, global const uint2* seed, ulong seed_offset, global const uint2* step,
    ulong step_offset, global float* y, ulong y_offset, global float* lse, ulong lse_offset, const Heads given, int depth, float scale) {
    local float queries[ROWS * ROW_STEP], keys[KEYS_SIZE], weights[ROWS * (KEYS + 1)], maxima[ROWS * (COLUMNS + 1)];
    const Heads sizes = given;
    const Dropout dropout = dropout_of(seed + seed_offset, step + step_offset);
    const int id = get_local_id(0), column = id % COLUMNS, first = id / COLUMNS * RM;
    int head, row0;
    tile_of_group(sizes, 0, ROWS, get_group_id(0), &head, &row0);
    q += q_offset + head_start(sizes, head, sizes.q_0, sizes.q_1, sizes.q_2);
    k += k_offset + head_start(sizes, head, sizes.k_0, sizes.k_1, sizes.k_2);
    v += v_offset + head_start(sizes, head, sizes.v_0, sizes.v_1, sizes.v_2);
    y += y_offset + head_start(sizes, head, sizes.y_0, sizes.y_1, sizes.y_2);
    mask += mask_offset + head_start(sizes, head, sizes.mask_0, sizes.mask_1, sizes.mask_2);
    load_rows(queries, ROW_STEP, q, sizes.q_row, row0, sizes.length, depth, ROWS, DEPTH, id);

    float sums[RM], most[RM], made[RM * FM];
    for (int i = 0; i < RM; ++i) {
        sums[i] = 0;
        most[i] = -INFINITY;
    }
    for (int i = 0; i < RM * FM; ++i) made[i] = 0;
    const int2 seen = positions_seen(sizes, mask, row0, row0 + ROWS);
    for (int key0 = seen.x; key0 < seen.y; key0 += KEYS) {
        barrier(CLK_LOCAL_MEM_FENCE);
        load_rows(keys, ROW_STEP, k, sizes.k_row, key0, sizes.positions, depth, KEYS, DEPTH, id);
        barrier(CLK_LOCAL_MEM_FENCE);
        float scores[RM * KM];
        for (int i = 0; i < RM * KM; ++i) scores[i] = 0;
        for (int d = 0; d < DEPTH; ++d)
            for (int j = 0; j < KM; ++j) {
                const float key = keys[(column + j * COLUMNS) * ROW_STEP + d];
                for (int i = 0; i < RM; ++i)
                    scores[i * KM + j] = mad(queries[(first + i) * ROW_STEP + d], key, scores[i * KM + j]);
            }
        for (int i = 0; i < RM; ++i) {
            float largest = -INFINITY;
            for (int j = 0; j < KM; ++j) {
                scores[i * KM + j] = masked(sizes, mask, row0 + first + i, key0 + column + j * COLUMNS,
                                            capped(sizes, scores[i * KM + j] * scale));
                largest = fmax(largest, scores[i * KM + j]);
            }
            maxima[(first + i) * (COLUMNS + 1) + column] = largest;
        }
        barrier(CLK_LOCAL_MEM_FENCE);  // the maxima are there, and nobody reads the keys any more
        load_rows(keys, FEATURES, v, sizes.v_row, key0, sizes.positions, sizes.features, KEYS, FEATURES, id);
        for (int i = 0; i < RM; ++i) {
            float largest = most[i];
            for (int j = 0; j < COLUMNS; ++j) largest = fmax(largest, maxima[(first + i) * (COLUMNS + 1) + j]);
            const float base = base_of(largest), shrink = exp2(most[i] - base);
            most[i] = largest;
            sums[i] *= shrink;
            for (int j = 0; j < KM; ++j) {
                const float weight = exp2(scores[i * KM + j] - base);
                sums[i] += weight;
                weights[(first + i) * (KEYS + 1) + column + j * COLUMNS] =
                    weight * factor_of(sizes, dropout, head, row0 + first + i, key0 + column + j * COLUMNS);
            }
            for (int j = 0; j < FM; ++j) made[i * FM + j] *= shrink;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int s = 0; s < KEYS; ++s)
            for (int j = 0; j < FM; ++j) {
                const float value = keys[s * FEATURES + column + j * COLUMNS];
                for (int i = 0; i < RM; ++i)
                    made[i * FM + j] = add_weighted(weights[(first + i) * (KEYS + 1) + s], value, made[i * FM + j]);
            }
    }
    for (int i = 0; i < RM; ++i) maxima[(first + i) * (COLUMNS + 1) + column] = sums[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < RM; ++i) {
        const int row = row0 + first + i;
        if (row >= sizes.length) continue;
        float sum = 0;
        for (int j = 0; j < COLUMNS; ++j) sum += maxima[(first + i) * (COLUMNS + 1) + j];
        for (int j = 0; j < FM; ++j)
            if (column + j * COLUMNS < sizes.features)
                y[row * sizes.y_row + column + j * COLUMNS] = sum == 0 ? 0.0f : made[i * FM + j] / sum;
        if (column == 0) lse[lse_offset + (long)head * sizes.length + row] = (most[i] + log2(sum)) * LN_2;
    }
}
