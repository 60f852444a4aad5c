// SPDX-License-Identifier: MIT
// attention.wgmma: attention on NVIDIA's matrix units for warpgroups (warpgroup.clh; compute capability 9.0a). The method is
// FlashAttention-2 and 3 (Dao 2023; Shah et al. 2024): a warpgroup has 64 queries and goes through the positions, KEYS at a time,
// and the weights go from the sums of one product to the operand of the next without leaving their registers.
//
//                    KEYS positions at a time, STAGES of them in local memory
//                  +-----------+-----------+--
//    warpgroup 0   | 64 rows   |           |        q k^T is a product of two tiles in local memory,
//    warpgroup 1   |           |           |        weights times v one of registers and a tile
//    ...           |           |           |
//                  +-----------+-----------+--
//
// KIND 1 and 2: q, k and v are halves or bfloat16, and are read where they lie. The product of the weights with v runs beside
// the scores of the next positions and their softmax. KIND 0: they are blocks of halves, one plane or two (planes.clh), with
// three products of halves for each of floats, whose sums are added in float.
//
// Define       meaning                                                                         example
// KIND         see above                                                                       1
// GROUPS       warpgroups: 2 or 3                                                              2
// STAGES       tiles of positions in local memory                                              5
// RESIDENT     work-groups that a compute unit should hold: 1 or 2                             2
// DRIFT        1 if warpgroups may be a tile of positions apart, which takes one stage more    1
// DEPTH, FEATURES, PRODUCTS    see planes.clh; PRODUCTS is 1 where KIND is not 0               64, 64, 1
// C_STORED     type of y (common/storage.clh)                                                  1
//
// Work-group: 128 * GROUPS work-items. A tile is panels of 64 columns, whose rows of 128 bytes are swizzled (unit.clh). Columns of v
// are rounded up to WIDE, a multiple of 32, in local memory. Local memory: PLANES * 128 * (64 * GROUPS * PANELS(DEPTH) + STAGES
// * 64 * (PANELS(DEPTH) + PANELS(FEATURES))) bytes.
#define KEYS 64
#if KIND
#define WEIGHT_BITS 7.0f
#define LAZY_BITS 8.0f
#define IN_USE 2
#else
#define WEIGHT_BITS 14.0f
#define LAZY_BITS 0.0f
#define IN_USE 1
#endif
// Tiles whose copies are on their way while others are in use.
#define AHEAD_OF_USE (STAGES - IN_USE - DRIFT)
#define ITEMS (128 * GROUPS)
#include "attention/panels.clh"
#include "attention/softmax.clh"
#include "matrix/mbarrier.clh"

#define ROWS (64 * GROUPS)
#define WIDE WIDE_OF(FEATURES)
#define QUERIES_BYTES (PLANES * GROUPS * TILE(DEPTH))
#define KEYS_BYTES (PLANES * TILE(DEPTH))
#define STAGE_BYTES (KEYS_BYTES + PLANES * TILE(WIDE))
#define SUMS (WIDE / 2)

COPY_TILE(copy_depth, DEPTH)
COPY_TILE(copy_wide, WIDE)

// Starts the copy of keys and values from position key0 on.
INLINE void copy_stage(uint to, const Source k, const Source v, int key0, int id) {
#pragma unroll
    for (int p = 0; p < PLANES; ++p) {
        Source k_plane = k, v_plane = v;
        k_plane.mine += p * PLANE_BYTES(DEPTH) / 2;
        v_plane.mine += p * PLANE_BYTES(FEATURES) / 2;
        copy_depth(to + p * TILE(DEPTH), k_plane, key0, id);
        copy_wide(to + KEYS_BYTES + p * TILE(WIDE), v_plane, key0, id);
    }
}

#if WIDE == 32
#define WAIT_SUMS(d) UNIT_WAIT_16(d)
#elif WIDE == 64
#define WAIT_SUMS(d) UNIT_WAIT_32(d)
#elif WIDE == 96
#define WAIT_SUMS(d)     \
    UNIT_WAIT_32(d)      \
    UNIT_WAIT_16((d + 32))
#else
#define WAIT_SUMS(d) UNIT_WAIT_64(d)
#endif

// Makes the next tile of positions usable, at key0, and starts the copy of that which is AHEAD_OF_USE further. With DRIFT a warp
// announces its part of the tile behind it, and waits for the others' parts of its own.
#if DRIFT
#define MEET                                              \
    COPY_WAIT_BUT(AHEAD_OF_USE - 2)                       \
    MBARRIER_ARRIVE(meetings_at + (number + 1 & 1) * 8)   \
    MBARRIER_AWAIT(meetings_at + (number & 1) * 8, number >> 1 & 1)
#else
#define MEET                            \
    COPY_WAIT_BUT(AHEAD_OF_USE - 1)     \
    UNIT_FENCE                          \
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
#define NEXT_TILE                                                                                                  \
    {                                                                                                              \
        MEET                                                                                                       \
        if (key0 + AHEAD_OF_USE * KEYS < end)                                                                      \
            copy_stage(stages + (number + AHEAD_OF_USE) % STAGES * STAGE_BYTES, keys, values,                      \
                       key0 + AHEAD_OF_USE * KEYS, id);                                                            \
        COPY_COMMIT                                                                                                \
    }

// s[32] = (SET) or += (ADD) the product of 64 queries, those of plane p, and a tile of positions over 16 features, the d-th.
#define SCORES_OF(HOW, s, p, tile, d) UNIT_64_##HOW(s, STEP(own_queries + (p)*GROUPS * TILE(DEPTH), d), STEP(tile, d));

// Of KIND 0, q, k and v are the workspace, whose parts begin at the places that follow them; else these are not read.
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void attention_wgmma(
    global const uchar* q, ulong q_offset, global const uchar* k, ulong k_offset, global const uchar* v, ulong v_offset,
    long k_planes, long v_planes, long q_factors, long k_factors, long v_factors, global const MASK_T* mask, ulong mask_offset,
    global const uint2* seed, ulong seed_offset, global const uint2* step, ulong step_offset, global C_T* y, ulong y_offset,
    global float* lse, ulong lse_offset, const Heads given, int depth, float scale) {
#if RESIDENT == 2
    UNIT_TWO_RESIDENT
#endif
    local uchar tiles[QUERIES_BYTES + STAGES * STAGE_BYTES] __attribute__((aligned(1024)));
    const Heads sizes = given;
    const Dropout dropout = dropout_of(seed + seed_offset, step + step_offset);
    const int id = get_local_id(0), lane = id & 31, warp = id >> 5, warpgroup = id >> 7;
    int head, row0;
    tile_of_group(sizes, 0, ROWS, get_group_id(0), &head, &row0);
    const long q_at = head_start(sizes, head, sizes.q_0, sizes.q_1, sizes.q_2);
    const long k_at = head_start(sizes, head, sizes.k_0, sizes.k_1, sizes.k_2);
    const long v_at = head_start(sizes, head, sizes.v_0, sizes.v_1, sizes.v_2);
    mask += mask_offset + head_start(sizes, head, sizes.mask_0, sizes.mask_1, sizes.mask_2);
    q += q_offset;
    k += k_offset;
    v += v_offset;
#if KIND
    const Source own = source_of(q, q_at, sizes.q_row, 64 * sizes.q_row, sizes.length, depth, id);
    const Source keys = source_of(k, k_at, sizes.k_row, 64 * sizes.k_row, sizes.positions, depth, id);
    const Source values = source_of(v, v_at, sizes.v_row, 64 * sizes.v_row, sizes.positions, sizes.features, id);
#else
    // Strides count blocks, whose rows are all there.
    const int rows = (sizes.length + 63) / 64 * 64, key_rows = (sizes.positions + 63) / 64 * 64;
    const int key_block = BLOCK_BYTES(DEPTH) / 2, value_block = BLOCK_BYTES(FEATURES) / 2;  // in elements
    const Source own = source_of(q, q_at * key_block, DEPTH, key_block, rows, DEPTH, id);
    const Source keys = source_of(k + k_planes, k_at * key_block, DEPTH, key_block, key_rows, DEPTH, id);
    const Source values = source_of(v + v_planes, v_at * value_block, FEATURES, value_block, key_rows, FEATURES, id);
    global const float* const k_factor = (global const float*)(k + k_factors) + k_at;
    global const float* const v_factor = (global const float*)(v + v_factors) + v_at;
    const int block = min(row0 / 64 + warpgroup, (sizes.length - 1) / 64);
    scale *= ((global const float*)(q + q_factors))[q_at + block];
#endif

    const uint queries = (uint)tiles, stages = queries + QUERIES_BYTES;
#pragma unroll
    for (int i = 0; i < PLANES * GROUPS; ++i) {
        Source plane = own;
        plane.mine += i / GROUPS * PLANE_BYTES(DEPTH) / 2;
        copy_depth(queries + i * TILE(DEPTH), plane, row0 + i % GROUPS * 64, id);
    }
    // The tiles of positions of the work-group, and [own_begin, own_end) of the warpgroup.
    const int own_row0 = row0 + warpgroup * 64, row = own_row0 + (warp & 3) * 16 + (lane >> 2);
    const int begin = positions_begin(sizes, row0, KEYS), end = positions_end(sizes, min(row0 + ROWS, sizes.length));
    int own_begin = positions_begin(sizes, own_row0, KEYS), own_end = positions_end(sizes, own_row0 + 64);
    if (own_row0 >= sizes.length || own_begin >= own_end) own_begin = own_end = end;
#pragma unroll
    for (int i = 0; i < AHEAD_OF_USE; ++i) {
        if (begin + i * KEYS < end) copy_stage(stages + i * STAGE_BYTES, keys, values, begin + i * KEYS, id);
        COPY_COMMIT
    }
    float made[SUMS], most[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, shrink[2];
#pragma unroll
    for (int i = 0; i < SUMS; ++i) made[i] = 0;
    const uint own_queries = queries + warpgroup * TILE(DEPTH);
#if DRIFT
    local ulong meetings[2];
    const uint meetings_at = (uint)meetings;
    if (id < 2) MBARRIER_BEGIN(meetings_at + id * 8, 4 * GROUPS)
    COPY_WAIT_BUT(AHEAD_OF_USE - 1)
    barrier(CLK_LOCAL_MEM_FENCE);
    MBARRIER_ARRIVE(meetings_at)
#endif
    int key0 = begin, number = 0;  // of the tile of positions
    for (; key0 < own_begin; key0 += KEYS, ++number) NEXT_TILE
#if KIND
#include "attention/wgmma_stored.clh"
#else
#include "attention/wgmma_planes.clh"
#endif
    for (; key0 < end; key0 += KEYS, ++number) NEXT_TILE
    COPY_WAIT_BUT(0)  // queries may see no position at all
    const long y_at = head_start(sizes, head, sizes.y_0, sizes.y_1, sizes.y_2);
    put_rows(made, most, sum, sizes, y + y_offset + y_at, lse + lse_offset, head, row, lane);
}
