// SPDX-License-Identifier: MIT
// attention.matrix, second kernel: attention on NVIDIA's matrix units (mma.sync), from blocks of halves (attention/planes.clh).
// The method is FlashAttention-2 (Dao 2023): the softmax is computed while a work-group goes through the positions, and the
// weights go from the sums of one product to the operand of the next without leaving their registers. With three products of
// halves for each of floats (Ootomo and Yokota 2022), sums over 64 of K stay in the matrix unit and are added in float.
//
//              KEYS positions at a time, of two stages in local memory
//            +-----------+-----------+--
//    warp 0  | 16 rows   |           |          tile.clh says what of them a lane has
//    warp 1  |           |           |
//    ...     |           |           |
//            +-----------+-----------+--
//
// Weights are 2^(score - maximum + 14), so that their halves have all bits that a float of up to 2^-10 has.
//
// Define     meaning                                                                 example
// KEYS       positions at a time: 64 or 32                                           64
// Q_LOCAL    1 if the queries stay in local memory, 0 if they are kept in registers  0
// C_STORED   type of y (common/storage.clh)                                          0
//
// Work-group: 128 work-items and 64 rows. Local memory: PLANES * (64 * (2 * DEPTH + 16) + 2 * KEYS * (2 * DEPTH + 2 *
// FEATURES + 32)) bytes.
#define ROWS 64
#include "attention/tile.clh"

#define QUERIES_BYTES (PLANES * TILE_BYTES(ROWS, DEPTH))
#define KEYS_BYTES (PLANES * TILE_BYTES(KEYS, DEPTH))
#define STAGE_BYTES (KEYS_BYTES + PLANES * TILE_BYTES(KEYS, FEATURES))
#define WEIGHT_BITS 14.0f
#define LAZY_BITS 0.0f
#include "attention/softmax.clh"

FETCH(fetch_queries, ROWS, ROWS, DEPTH)
FETCH(fetch_keys, KEYS, KEYS, DEPTH)
FETCH(fetch_values, KEYS, KEYS, FEATURES)
LOAD_FIRST(load_queries, ROWS, DEPTH)
MULTIPLY_ROWS(multiply_keys, ROWS, KEYS, DEPTH, Q_LOCAL, (Q_LOCAL ? KEYS / 16 : 1))
MULTIPLY_COLUMNS(multiply_values, KEYS, FEATURES)

// Starts the copy of keys and values from position key0 on.
INLINE void fetch_stage(uint to, global const uchar* k, global const uchar* v, int key0, int id) {
    const long block = key0 / BLOCK_ROWS;
    fetch_keys(to, k + block * BLOCK_BYTES(DEPTH), key0 % BLOCK_ROWS, id);
    fetch_values(to + KEYS_BYTES, v + block * BLOCK_BYTES(FEATURES), key0 % BLOCK_ROWS, id);
}

kernel __attribute__((reqd_work_group_size(TILE_ITEMS, 1, 1))) void attention_matrix(
    global const uchar* planes, ulong planes_offset, global const MASK_T* mask, ulong mask_offset, global const uint2* seed,
    ulong seed_offset, global const uint2* step, ulong step_offset, global C_T* y, ulong y_offset, global float* lse,
    ulong lse_offset, const Heads given, long k_planes, long v_planes, long q_factors, long k_factors, long v_factors,
    float scale) {
    local uchar tiles[QUERIES_BYTES + 2 * STAGE_BYTES] __attribute__((aligned(128)));
    const Heads sizes = given;
    const Dropout dropout = dropout_of(seed + seed_offset, step + step_offset);
    const int id = get_local_id(0), lane = id & 31, warp = id >> 5;
    int head, row0;
    tile_of_group(sizes, 0, ROWS, get_group_id(0), &head, &row0);
    planes += planes_offset;
    // Strides of q, k and v count blocks.
    const long q_block = head_start(sizes, head, sizes.q_0, sizes.q_1, sizes.q_2) + row0 / BLOCK_ROWS;
    const long k_block = head_start(sizes, head, sizes.k_0, sizes.k_1, sizes.k_2);
    const long v_block = head_start(sizes, head, sizes.v_0, sizes.v_1, sizes.v_2);
    global const uchar* const q_from = planes + q_block * BLOCK_BYTES(DEPTH);
    global const uchar* const k_from = planes + k_planes + k_block * BLOCK_BYTES(DEPTH);
    global const uchar* const v_from = planes + v_planes + v_block * BLOCK_BYTES(FEATURES);
    global const float* const k_factor = (global const float*)(planes + k_factors) + k_block;
    global const float* const v_factor = (global const float*)(planes + v_factors) + v_block;
    const float q_factor = ((global const float*)(planes + q_factors))[q_block] * scale;
    mask += mask_offset + head_start(sizes, head, sizes.mask_0, sizes.mask_1, sizes.mask_2);
    const long y_start = head_start(sizes, head, sizes.y_0, sizes.y_1, sizes.y_2);

    const uint queries = (uint)tiles, stages = queries + QUERIES_BYTES;
    fetch_queries(queries, q_from, 0, id);
    const int begin = positions_begin(sizes, row0, KEYS), end = positions_end(sizes, row0 + ROWS);
    if (begin < end) fetch_stage(stages, k_from, v_from, begin, id);
    COPY_COMMIT
    const int row = row0 + warp * 16 + (lane >> 2);
    const uint q_at = FIRST_AT(queries, DEPTH, warp, lane);
    uint q[PLANES][DEPTH / 16][4];
    float made[FEATURES / 2], most[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < FEATURES / 2; ++i) made[i] = 0;
    for (int key0 = begin, stage = 0; key0 < end; key0 += KEYS, stage ^= 1) {
        COPY_WAIT_BUT(0)
        barrier(CLK_LOCAL_MEM_FENCE);
        if (key0 + KEYS < end) fetch_stage(stages + (stage ^ 1) * STAGE_BYTES, k_from, v_from, key0 + KEYS, id);
        COPY_COMMIT
        if (!Q_LOCAL && key0 == begin) load_queries(q, q_at);
        const uint keys = stages + stage * STAGE_BYTES;
        float s[KEYS / 2], shrink[2];
        uint weights[PLANES][KEYS / 4];
        multiply_keys(s, q, q_at, BY_ROWS_AT(keys, DEPTH, lane));
        // A block of zeros has the smallest factors, whose product would be 0.
        float factor = fmax(q_factor * k_factor[key0 / BLOCK_ROWS], 1.17549435e-38f);
        factor = mask_scores(s, sizes, mask, row, key0, factor, lane);
        weigh(s, factor, most, sum, shrink, sizes, dropout, head, row, key0, lane);
#pragma unroll
        for (int i = 0; i < KEYS / 4; ++i) SPLIT_TO(weights, i, s[2 * i], s[2 * i + 1])
        const float value_factors[2] = {v_factor[key0 / BLOCK_ROWS], v_factor[key0 / BLOCK_ROWS]};
        multiply_values(made, weights, shrink, value_factors, BY_COLUMNS_AT(keys + KEYS_BYTES, FEATURES, lane));
    }
    COPY_WAIT_BUT(0)  // queries may see no position at all
    put_rows(made, most, sum, sizes, y + y_offset + y_start, lse + lse_offset, head, row, lane);
}
