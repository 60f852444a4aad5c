// SPDX-License-Identifier: MIT
// attention.wgmma, gradients, of operands in 16 bits, which are read where they lie: on NVIDIA's matrix units for warpgroups
// (warpgroup.clh; compute capability 9.0a). No sum is shared by work-groups, so that two runs give the same bits. After
// FlashAttention-2 and 3 (Dao 2023; Shah et al. 2024), in two kernels in place of atomics:
//
//   p = 2^(score - lse)   dp = dy v^T   ds = p * (dp - delta)   dq = scale ds k    dk = scale ds^T q    dv = p^T dy
//
//                    64 rows of the other side at a time, five tiles of them in local memory
//                  +-----------+-----------+--
//    warpgroup 0   | 64 rows   |           |        OF_KEYS 0: the rows are queries, with dy, and go through keys and values: dq
//    warpgroup 1   |           |           |        OF_KEYS 1: the rows are keys, with values, and go through queries and dy: dk, dv
//    ...           |           |           |
//                  +-----------+-----------+--
//
// Scores and dp are products of two tiles in local memory whose rows are the own ones, so that p and ds (or what is transposed of
// them) are in the registers where the next products take their first operand from. delta is the sum of dy * y along a row.
//
//    products    | scores | dp     | p dy   | next scores | ds q   | next dp |
//    work-items           |   p             | ds                   | next p ...
//
// Define         meaning                                                                           example
// OF_KEYS        see above                                                                         0
// KIND           of q, k, v and dy: 1 halves, 2 bfloat16                                           1
// GROUPS         warpgroups                                                                        2
// VALUE_STAGES   tiles of the other side's values (or dy) in local memory: 5, or 4, which takes    5
//                less memory and more time
// DEPTH, FEATURES, PRODUCTS    see planes.clh; PRODUCTS is 1                                       64, 64, 1
// C_STORED       type of the results (common/storage.clh)                                          1
//
// Work-group: 128 * GROUPS work-items. Columns are rounded up to multiples of 32 in local memory. Local memory: 8192 * ((GROUPS + 5) *
// PANELS(DEPTH) + (GROUPS + VALUE_STAGES) * PANELS(FEATURES)) + 512 * VALUE_STAGES * OF_KEYS + 16 bytes.
#define ITEMS (128 * GROUPS)
#include "attention/heads.clh"
#include "attention/panels.clh"
#include "attention/rows.clh"
#include "matrix/mbarrier.clh"

#define ROWS (64 * GROUPS)
#define INNER 64
#define KEY_COLUMNS WIDE_OF(DEPTH)
#define VALUE_COLUMNS WIDE_OF(FEATURES)
#define OWN_KEYS_BYTES (GROUPS * TILE(KEY_COLUMNS))
#define OWN_BYTES (OWN_KEYS_BYTES + GROUPS * TILE(VALUE_COLUMNS))
#define KEYS_BYTES TILE(KEY_COLUMNS)
#define VALUES_BYTES TILE(VALUE_COLUMNS)
// Of the tiles in local memory two are in use, three since warpgroups may be a tile apart, and so many are on their way.
#define KEY_STAGES 5
#define AHEAD_OF_USE 2
#define VALUES_AT (OWN_BYTES + KEY_STAGES * KEYS_BYTES)
#define COLUMNS_AT (VALUES_AT + VALUE_STAGES * VALUES_BYTES)
#define COLUMNS_BYTES (OF_KEYS ? 8 * INNER * VALUE_STAGES : 0)
// As 16 bits, weights are 2^14 p and what dp becomes is 2^4 ds, so that halves reach further down.
#define WEIGHT_BITS 14.0f
#define WEIGHT_UNSCALE 6.103515625e-05f
#define GRADIENT_SCALE 9.765625e-04f  // 2^4 / 2^14
#define GRADIENT_UNSCALE 0.0625f
#define PACK JOIN(PACK_, KIND)

COPY_TILE(copy_keys, KEY_COLUMNS)
COPY_TILE(copy_values, VALUE_COLUMNS)
PUT_ROWS(put_keys, DEPTH)
#if OF_KEYS
PUT_ROWS(put_values, FEATURES)
#endif

// Starts the copy of rows inner0 and further of the other side, and of lse and delta if those are queries.
INLINE void copy_stage(uint to_keys, uint to_values, uint columns, const Source keys, const Source values, global const float* lse,
                       global const float* delta, int length, int inner0, int id) {
    copy_keys(to_keys, keys, inner0, id);
    copy_values(to_values, values, inner0, id);
    if (!OF_KEYS || id >= 2 * INNER) return;
    const int at = inner0 + id % INNER;
    COPY_4_OF(columns + id * 4, (id < INNER ? lse : delta) + min(at, length - 1), at < length ? 4 : 0)
}

// Makes bases and deltas, as `weigh` and `differentiate` want them, of the lse and delta that this work-item copied. Beyond the last
// query there are zeros, which a mask may be added to.
INLINE void prepare_columns(local float* columns, int inner0, int length, int id) {
    if (!OF_KEYS || id >= 2 * INNER) return;
    const float x = columns[id];
    columns[id] = id >= INNER                       ? x * GRADIENT_SCALE
                  : inner0 + id < length ? WEIGHT_BITS - base_of_row(x)
                                         : -INFINITY;
}

// Where element i of a lane is among the 64 columns: the even one of its pair.
#define PAIR_AT(i) (((i) >> 2) * 8 + (lane & 3) * 2)
#if OF_KEYS
#define QUERY(i, next) (inner0 + PAIR_AT(i) + (next))
#define POSITION(i, next) (row + ((i)&2) * 4)
#define OF_PAIR(x, i) (*(local const float2*)((x) + PAIR_AT(i)))
#define BASES local const float*
#else
#define QUERY(i, next) (row + ((i)&2) * 4)
#define POSITION(i, next) (inner0 + PAIR_AT(i) + (next))
#define OF_PAIR(x, i) ((float2)((x)[(i) >> 1 & 1], (x)[(i) >> 1 & 1]))
#define BASES const float*
#endif

// Whether a warp's rows and a tile of the other side exclude nothing.
INLINE bool is_plain(const Heads sizes, int row, int inner0, int lane) {
    const int first = row - (lane >> 2);
    return !MASK && !SOFTCAP && !DROPOUT &&
           (OF_KEYS ? sees_all(sizes, inner0, inner0 + INNER, first, first + 16)
                    : sees_all(sizes, first, first + 16, inner0, inner0 + INNER));
}

// Makes p, times the soft cap's slope, of the scores s, and `weights`, p with dropout as 16 bits. `bases`: of the queries, by the
// lane's rows, or by columns in local memory. dropped: of element i, bit i says whether it is.
INLINE void weigh(float* p, const float* s, uint* weights, uint* dropped, const Heads sizes, global const MASK_T* mask, int row, int inner0,
                  BASES bases, float factor, const Dropout dropout, int head, int lane) {
    if (is_plain(sizes, row, inner0, lane)) {
#pragma unroll
        for (int i = 0; i < INNER / 2; i += 2) {
            const float2 base = OF_PAIR(bases, i);
            p[i] = power_of_2(fma(s[i], factor, base.x));
            p[i + 1] = power_of_2(fma(s[i + 1], factor, base.y));
            weights[i / 2] = PACK(p[i], p[i + 1]);
        }
        return;
    }
    *dropped = 0;
#pragma unroll
    for (int i = 0; i < INNER / 2; i += 2) {
        const float2 base = OF_PAIR(bases, i);
        float kept[2];
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const int query = QUERY(i, n), position = POSITION(i, n);
            const float score = capped(sizes, s[i + n] * factor);
            const float weight = power_of_2(masked(sizes, mask, query, position, score) + (n == 0 ? base.x : base.y));
            const int drop = is_dropped(sizes, dropout, head, query, position);
            *dropped |= (uint)drop << (i + n);
            kept[n] = drop ? 0.0f : weight;
            p[i + n] = weight * slope_of_cap(sizes, score);
        }
        weights[i / 2] = PACK(kept[0], kept[1]);
    }
}

// Makes ds, as 16 bits, of p and dp. `deltas`: as `bases`. factor: of dp.
INLINE void differentiate(const float* p, const float* dp, uint* ds, uint dropped, BASES deltas, float factor, int lane) {
#pragma unroll
    for (int i = 0; i < INNER / 2; i += 2) {
        const float2 delta = OF_PAIR(deltas, i);
        const float x = DROPOUT && dropped >> i & 1 ? 0.0f : dp[i];
        const float y = DROPOUT && dropped >> (i + 1) & 1 ? 0.0f : dp[i + 1];
        ds[i / 2] = PACK(p[i] * fma(x, factor, -delta.x), p[i + 1] * fma(y, factor, -delta.y));
    }
}

// Where tile `number` of the other side is in local memory.
#define KEYS_OF(number) (own_at + OWN_BYTES + (number) % KEY_STAGES * KEYS_BYTES)
#define VALUES_OF(number) (own_at + VALUES_AT + (number) % VALUE_STAGES * VALUES_BYTES)
#define COLUMNS_OF(number) ((number) % VALUE_STAGES * 2 * INNER)
// A warp announces its part of the next tile of the other side, and waits for the others' parts of tile `number`. Then it starts the
// copy of that which is AHEAD_OF_USE further.
#define MEET(number)                                                                                             \
    {                                                                                                            \
        COPY_WAIT_BUT(AHEAD_OF_USE - 2)                                                                          \
        prepare_columns(columns + COLUMNS_OF((number) + 1), begin + ((number) + 1) * INNER, sizes.length, id);   \
        MBARRIER_ARRIVE(meetings_at + ((number) + 1 & 1) * 8)                                                    \
        MBARRIER_AWAIT(meetings_at + ((number)&1) * 8, (number) >> 1 & 1)                                        \
        COPY_TO((number) + AHEAD_OF_USE)                                                                         \
    }
#define COPY_TO(number)                                                                                          \
    {                                                                                                            \
        if (begin + (number)*INNER < end)                                                                        \
            copy_stage(KEYS_OF(number), VALUES_OF(number), columns_at + COLUMNS_OF(number) * 4, inner_keys,      \
                       inner_values, lse, delta, sizes.length, begin + (number)*INNER, id);                      \
        COPY_COMMIT                                                                                              \
    }

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void attention_wgmma_backward(
    global const uchar* q, ulong q_offset, global const uchar* k, ulong k_offset, global const uchar* v, ulong v_offset,
    global const uchar* dy, ulong dy_offset, global const MASK_T* mask, ulong mask_offset, global const uint2* seed,
    ulong seed_offset, global const uint2* step, ulong step_offset, global const float* lse, ulong lse_offset,
    global const float* delta, ulong delta_offset, global C_T* d_keys, ulong d_keys_offset, global C_T* d_values,
    ulong d_values_offset, const Heads given, int depth, long d_keys_0, long d_keys_1, long d_keys_2, long d_keys_row,
    long d_values_0, long d_values_1, long d_values_2, long d_values_row, float scale) {
    local uchar tiles[COLUMNS_AT + COLUMNS_BYTES + 16] __attribute__((aligned(1024)));
    local float* const columns = (local float*)(tiles + COLUMNS_AT);  // bases and deltas of all stages
    const Heads sizes = given;
    const Dropout dropout = dropout_of(seed + seed_offset, step + step_offset);
    const int id = get_local_id(0), lane = id & 31, warp = first_lane(id >> 5), warpgroup = warp >> 2;
    const int own_rows = OF_KEYS ? sizes.positions : sizes.length;
    int head, row0;
    tile_of_group(sizes, OF_KEYS, ROWS, get_group_id(0), &head, &row0);
    mask += mask_offset + head_start(sizes, head, sizes.mask_0, sizes.mask_1, sizes.mask_2);
    lse += lse_offset + (long)head * sizes.length;
    delta += delta_offset + (long)head * sizes.length;
    const Source queries = source_of(q + q_offset, head_start(sizes, head, sizes.q_0, sizes.q_1, sizes.q_2), sizes.q_row,
                                     64 * sizes.q_row, sizes.length, depth, id);
    const Source gradients = source_of(dy + dy_offset, head_start(sizes, head, sizes.y_0, sizes.y_1, sizes.y_2), sizes.y_row,
                                    64 * sizes.y_row, sizes.length, sizes.features, id);
    const Source keys = source_of(k + k_offset, head_start(sizes, head, sizes.k_0, sizes.k_1, sizes.k_2), sizes.k_row,
                                  64 * sizes.k_row, sizes.positions, depth, id);
    const Source values = source_of(v + v_offset, head_start(sizes, head, sizes.v_0, sizes.v_1, sizes.v_2), sizes.v_row,
                                    64 * sizes.v_row, sizes.positions, sizes.features, id);
    const Source inner_keys = OF_KEYS ? queries : keys, inner_values = OF_KEYS ? gradients : values;

    const uint own_at = (uint)tiles, columns_at = own_at + COLUMNS_AT;
    const uint meetings_at = columns_at + COLUMNS_BYTES;
#pragma unroll
    for (int i = 0; i < GROUPS; ++i) {
        copy_keys(own_at + i * TILE(KEY_COLUMNS), OF_KEYS ? keys : queries, row0 + i * 64, id);
        copy_values(own_at + OWN_KEYS_BYTES + i * TILE(VALUE_COLUMNS), OF_KEYS ? values : gradients, row0 + i * 64, id);
    }
    const uint own_keys = own_at + warpgroup * TILE(KEY_COLUMNS);
    const uint own_values = own_at + OWN_KEYS_BYTES + warpgroup * TILE(VALUE_COLUMNS);
    // The rows of the other side that the work-group goes through, and [own_begin, own_end) of the warpgroup.
    const int own_row0 = row0 + warpgroup * 64, row = own_row0 + (warp & 3) * 16 + (lane >> 2);
#if OF_KEYS
    const int begin = queries_begin(sizes, row0, INNER), end = queries_end(sizes, row0 + ROWS);
    int own_begin = queries_begin(sizes, own_row0, INNER), own_end = queries_end(sizes, own_row0 + 64);
#else
    const int begin = positions_begin(sizes, row0, INNER), end = positions_end(sizes, row0 + ROWS);
    int own_begin = positions_begin(sizes, own_row0, INNER), own_end = positions_end(sizes, own_row0 + 64);
    float bases[2], deltas[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int at = min(row + 8 * r, sizes.length - 1);
        bases[r] = WEIGHT_BITS - base_of_row(lse[at]);
        deltas[r] = delta[at] * GRADIENT_SCALE;
    }
#endif
    if (own_row0 >= own_rows || own_begin >= own_end) own_begin = own_end = end;
    const float score_factor = scale * LOG2_E, dp_factor = (DROPOUT ? sizes.kept : 1.0f) * GRADIENT_SCALE;
#pragma unroll
    for (int i = 0; i < AHEAD_OF_USE; ++i) COPY_TO(i)
    float made_keys[KEY_COLUMNS / 2];
#pragma unroll
    for (int i = 0; i < KEY_COLUMNS / 2; ++i) UNIT_ZERO(made_keys[i])
#if OF_KEYS
    float made_values[VALUE_COLUMNS / 2];
#pragma unroll
    for (int i = 0; i < VALUE_COLUMNS / 2; ++i) UNIT_ZERO(made_values[i])
#endif
    if (id < 2) MBARRIER_BEGIN(meetings_at + id * 8, 4 * GROUPS)
    COPY_WAIT_BUT(AHEAD_OF_USE - 1)
    prepare_columns(columns, begin, sizes.length, id);
    barrier(CLK_LOCAL_MEM_FENCE);
    MBARRIER_ARRIVE(meetings_at)
    const int tiles_there = max(end - begin + INNER - 1, 0) / INNER, own_tiles = max(own_end - begin + INNER - 1, 0) / INNER;
    int number = 0;  // of the tile of the other side
    for (; number < tiles_there && begin + number * INNER < own_begin; ++number) MEET(number)
#include "attention/wgmma_gradients.clh"
    for (; number < tiles_there; ++number) MEET(number)
    COPY_WAIT_BUT(0)  // rows may see nothing at all
    put_keys(d_keys + d_keys_offset + head_start(sizes, head, d_keys_0, d_keys_1, d_keys_2), d_keys_row, made_keys, row, own_rows,
             depth, scale * GRADIENT_UNSCALE, lane);
#if OF_KEYS
    put_values(d_values + d_values_offset + head_start(sizes, head, d_values_0, d_values_1, d_values_2), d_values_row, made_values,
               row, own_rows, sizes.features, WEIGHT_UNSCALE * (DROPOUT ? sizes.kept : 1.0f), lane);
#endif
}
