// SPDX-License-Identifier: MIT
// attention.matrix, gradients: the scores are computed again, from the halves that pack.cl makes, and no sum is shared by
// work-groups, so that two runs give the same bits. After FlashAttention-2 (Dao 2023), in two kernels in place of atomics:
//
//   p = 2^(score - lse)   dp = dy v^T   ds = p * (dp - delta)   dq = scale ds k    dk = scale ds^T q    dv = p^T dy
//
//                 INNER rows of the other side at a time
//               +------+------+--
//       warp 0  | 16   |      |         OF_KEYS 0: the rows are queries, with dy, and go through keys and values: dq
//       ...     | rows |      |         OF_KEYS 1: the rows are keys, with values, and go through queries and dy: dk and dv
//               +------+------+--
//
// tile.clh says what of that a lane has. delta is the sum of dy * y along a row. Rows of p and of ds have a power of two
// each as their scale when they become halves.
//
// Define     meaning                                                                 example
// OF_KEYS    see above                                                               0
// C_STORED   type of the results (common/storage.clh)                          0
// ROWS       rows of a work-group: 64, or 128 where only one fits a compute unit     64
// INNER      rows of the other side at a time, a divisor of 64                       32
//
// Work-group: 2 * ROWS work-items. Local memory: PLANES * (ROWS + 2 * INNER) * (2 * DEPTH + 2 * FEATURES + 32) + 16 * INNER
// bytes.
#include "attention/heads.clh"
#include "attention/tile.clh"

#define OUTER_KEYS_BYTES (PLANES * TILE_BYTES(ROWS, DEPTH))
#define OUTER_BYTES (OUTER_KEYS_BYTES + PLANES * TILE_BYTES(ROWS, FEATURES))
#define INNER_KEYS_BYTES (PLANES * TILE_BYTES(INNER, DEPTH))
#define STAGE_BYTES (INNER_KEYS_BYTES + PLANES * TILE_BYTES(INNER, FEATURES))

FETCH(fetch_outer_keys, BLOCK_ROWS, ROWS, DEPTH)
FETCH(fetch_outer_values, BLOCK_ROWS, ROWS, FEATURES)
FETCH(fetch_inner_keys, INNER, INNER, DEPTH)
FETCH(fetch_inner_values, INNER, INNER, FEATURES)
MULTIPLY_ROWS(multiply_keys, ROWS, INNER, DEPTH, 1, INNER / 16)
MULTIPLY_ROWS(multiply_values, ROWS, INNER, FEATURES, 1, INNER / 16)
MULTIPLY_COLUMNS(add_keys, INNER, DEPTH)
#if OF_KEYS
MULTIPLY_COLUMNS(add_values, INNER, FEATURES)
#endif

// p or ds as halves, and what undoes their scale by row.
INLINE void split_rows(const float* x, uint halves[PLANES][INNER / 4], float* unscale) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        float most = 0;
#pragma unroll
        for (int j = 0; j < INNER / 8; ++j) most = fmax(most, fmax(fabs(x[4 * j + 2 * r]), fabs(x[4 * j + 2 * r + 1])));
        const uint bits = as_uint(quad_max(most));
        const float scale = split_scale(bits);
        unscale[r] = split_unscale(bits);
#pragma unroll
        for (int j = 0; j < INNER / 8; ++j)
            SPLIT_TO(halves, 2 * j + r, x[4 * j + 2 * r] * scale, x[4 * j + 2 * r + 1] * scale)
    }
}

// Weights p of the scores s, times dropout's factors, and ds in place of dp. `bases`, `deltas`: of queries, by the lane's rows, or by columns in local
// memory. factor: of scores; value_factor: of dp.
INLINE void differentiate(float* s, float* dp, const Heads sizes, global const MASK_T* mask, int row, int inner0,
                          const float* bases, const float* deltas, local const float* column_lse,
                          local const float* column_delta, float factor, float value_factor, const Dropout dropout, int head,
                          int lane) {
#pragma unroll
    for (int i = 0; i < INNER / 2; ++i) {
        const int r = i >> 1 & 1, own = row + 8 * r, column = (i >> 2) * 8 + (lane & 3) * 2 + (i & 1);
#if OF_KEYS
        const int query = inner0 + column, position = own;
        // Beyond the last query there are zeros, which a mask may be added to.
        const float base = query < sizes.length ? base_of_row(column_lse[column]) : INFINITY;
        const float delta = column_delta[column];
#else
        const int query = own, position = inner0 + column;
        const float base = bases[r], delta = deltas[r];
#endif
        const float score = capped(sizes, s[i] * factor);
        const float p = power_of_2(masked(sizes, mask, query, position, score) - base);
        const float kept = factor_of(sizes, dropout, head, query, position);
        s[i] = p * kept;
        dp[i] = p * fma(dp[i] * kept, value_factor, -delta) * slope_of_cap(sizes, score);
    }
}

PUT_ROWS(put_keys, DEPTH)
#if OF_KEYS
PUT_ROWS(put_values, FEATURES)
#endif

// What queries, with dy, or keys, with values, are in the workspace: blocks of q or k and of dy or v, and their factors. Of a
// head.
typedef struct {
    global const uchar *keys, *values;
    global const float *key_factors, *value_factors;
} Side;

INLINE Side side_at(global const uchar* planes, long keys, long key_factors, long key_block, long values, long value_factors,
                    long value_block) {
    Side side;
    side.keys = planes + keys + key_block * BLOCK_BYTES(DEPTH);
    side.values = planes + values + value_block * BLOCK_BYTES(FEATURES);
    side.key_factors = (global const float*)(planes + key_factors) + key_block;
    side.value_factors = (global const float*)(planes + value_factors) + value_block;
    return side;
}

// Starts the copy of rows inner0 and further of the other side, and of lse and delta if those are queries.
INLINE void fetch_stage(uint to, uint columns, const Side inner, global const float* lse, global const float* delta,
                        int length, int inner0, int id) {
    const long block = inner0 / BLOCK_ROWS;
    fetch_inner_keys(to, inner.keys + block * BLOCK_BYTES(DEPTH), inner0 % BLOCK_ROWS, id);
    fetch_inner_values(to + INNER_KEYS_BYTES, inner.values + block * BLOCK_BYTES(FEATURES), inner0 % BLOCK_ROWS, id);
    if (!OF_KEYS || id >= 2 * INNER) return;
    const int at = inner0 + id % INNER;
    COPY_4_OF(columns + id * 4, (id < INNER ? lse : delta) + min(at, length - 1), at < length ? 4 : 0)
}

// Starts the copy of the work-group's own rows, whose blocks begin with `first` of `blocks`. What lies beyond the last block
// of a tile reaches no result.
INLINE void fetch_own(uint to, const Side own, int first, int blocks, int id) {
    for (int b = 0; b < ROWS / BLOCK_ROWS && first + b < blocks; ++b) {
        const uint row = b * BLOCK_ROWS;
        fetch_outer_keys(to + row * ROW_BYTES(DEPTH), own.keys + (long)(first + b) * BLOCK_BYTES(DEPTH), 0, id);
        fetch_outer_values(to + OUTER_KEYS_BYTES + row * ROW_BYTES(FEATURES),
                           own.values + (long)(first + b) * BLOCK_BYTES(FEATURES), 0, id);
    }
}

kernel __attribute__((reqd_work_group_size(TILE_ITEMS, 1, 1))) void attention_backward(
    global const uchar* planes, ulong planes_offset, global const MASK_T* mask, ulong mask_offset, global const uint2* seed,
    ulong seed_offset, global const uint2* step, ulong step_offset, global const float* lse, ulong lse_offset,
    global const float* delta, ulong delta_offset, global C_T* d_keys, ulong d_keys_offset,
    global C_T* d_values, ulong d_values_offset, const Heads given, int depth, long d_keys_0, long d_keys_1, long d_keys_2,
    long d_keys_row, long d_values_0, long d_values_1, long d_values_2, long d_values_row, long k_planes, long v_planes,
    long dy_planes, long q_factors, long k_factors, long v_factors, long dy_factors, float scale) {
    local uchar tiles[OUTER_BYTES + 2 * STAGE_BYTES] __attribute__((aligned(128)));
    local float columns[4 * INNER];  // lse and delta, of two stages
    const Heads sizes = given;
    const Dropout dropout = dropout_of(seed + seed_offset, step + step_offset);
    const int id = get_local_id(0), lane = id & 31, warp = id >> 5;
    const int outer_rows = OF_KEYS ? sizes.positions : sizes.length;
    int head, row0;
    tile_of_group(sizes, OF_KEYS, ROWS, get_group_id(0), &head, &row0);
    planes += planes_offset;
    mask += mask_offset + head_start(sizes, head, sizes.mask_0, sizes.mask_1, sizes.mask_2);
    lse += lse_offset + (long)head * sizes.length;
    delta += delta_offset + (long)head * sizes.length;
    // Strides of q, k and v count blocks.
    const Side queries = side_at(planes, 0, q_factors, head_start(sizes, head, sizes.q_0, sizes.q_1, sizes.q_2), dy_planes,
                                 dy_factors, (long)head * ((sizes.length + BLOCK_ROWS - 1) / BLOCK_ROWS));
    const Side keys = side_at(planes, k_planes, k_factors, head_start(sizes, head, sizes.k_0, sizes.k_1, sizes.k_2), v_planes,
                              v_factors, head_start(sizes, head, sizes.v_0, sizes.v_1, sizes.v_2));
    const Side own = OF_KEYS ? keys : queries, inner = OF_KEYS ? queries : keys;
    const int blocks = (outer_rows + BLOCK_ROWS - 1) / BLOCK_ROWS, block0 = row0 / BLOCK_ROWS;
    const int block = min(block0 + warp / 4, blocks - 1);  // of the warp's rows
    const float key_factor = own.key_factors[block] * scale * LOG2_E, value_factor = own.value_factors[block];

    const uint outer = (uint)tiles, stages = outer + OUTER_BYTES, columns_at = (uint)columns;
    fetch_own(outer, own, block0, blocks, id);
    const int begin = OF_KEYS ? queries_begin(sizes, row0, INNER) : positions_begin(sizes, row0, INNER);
    const int end = OF_KEYS ? queries_end(sizes, row0 + ROWS) : positions_end(sizes, row0 + ROWS);
    if (begin < end) fetch_stage(stages, columns_at, inner, lse, delta, sizes.length, begin, id);
    COPY_COMMIT
    const int row = row0 + warp * 16 + (lane >> 2);
    float bases[2], deltas[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int at = min(row + 8 * r, sizes.length - 1);
        bases[r] = OF_KEYS ? 0.0f : base_of_row(lse[at]);
        deltas[r] = OF_KEYS ? 0.0f : delta[at];
    }
    float made_keys[DEPTH / 2], made_values[FEATURES / 2];
    const float keep[2] = {1, 1};
#pragma unroll
    for (int i = 0; i < DEPTH / 2; ++i) made_keys[i] = 0;
#pragma unroll
    for (int i = 0; i < FEATURES / 2; ++i) made_values[i] = 0;
    for (int inner0 = begin, stage = 0; inner0 < end; inner0 += INNER, stage ^= 1) {
        COPY_WAIT_BUT(0)
        barrier(CLK_LOCAL_MEM_FENCE);
        if (inner0 + INNER < end)
            fetch_stage(stages + (stage ^ 1) * STAGE_BYTES, columns_at + (stage ^ 1) * 8 * INNER, inner, lse, delta,
                        sizes.length, inner0 + INNER, id);
        COPY_COMMIT
        const uint inner_keys = stages + stage * STAGE_BYTES, inner_values = inner_keys + INNER_KEYS_BYTES;
        const float inner_key = inner.key_factors[inner0 / BLOCK_ROWS], inner_value = inner.value_factors[inner0 / BLOCK_ROWS];
        float s[INNER / 2], dp[INNER / 2], unscale[2];
        uint halves[PLANES][INNER / 4], a[PLANES][DEPTH / 16][4], b[PLANES][FEATURES / 16][4];
        multiply_keys(s, a, FIRST_AT(outer, DEPTH, warp, lane), BY_ROWS_AT(inner_keys, DEPTH, lane));
        multiply_values(dp, b, FIRST_AT(outer + OUTER_KEYS_BYTES, FEATURES, warp, lane), BY_ROWS_AT(inner_values, FEATURES, lane));
        differentiate(s, dp, sizes, mask, row, inner0, bases, deltas, columns + stage * 2 * INNER, columns + (stage * 2 + 1) * INNER,
                      key_factor * inner_key, value_factor * inner_value, dropout, head, lane);
        split_rows(dp, halves, unscale);
        const float key_factors[2] = {unscale[0] * inner_key, unscale[1] * inner_key};
        add_keys(made_keys, halves, keep, key_factors, BY_COLUMNS_AT(inner_keys, DEPTH, lane));
#if OF_KEYS
        split_rows(s, halves, unscale);
        const float value_factors[2] = {unscale[0] * inner_value, unscale[1] * inner_value};
        add_values(made_values, halves, keep, value_factors, BY_COLUMNS_AT(inner_values, FEATURES, lane));
#endif
    }
    COPY_WAIT_BUT(0)  // rows may see nothing at all
    put_keys(d_keys + d_keys_offset + head_start(sizes, head, d_keys_0, d_keys_1, d_keys_2), d_keys_row, made_keys, row,
             outer_rows, depth, scale, lane);
#if OF_KEYS
    put_values(d_values + d_values_offset + head_start(sizes, head, d_values_0, d_values_1, d_values_2), d_values_row,
               made_values, row, outer_rows, sizes.features, 1.0f, lane);
#endif
}
