// SPDX-License-Identifier: MIT
// attention.wgmma: attention on NVIDIA's matrix units for warpgroups (unit_wgmma.clh; compute capability 9.0a). The method is
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
// Define       meaning                                                                 example
// KIND       see above                                                               1
// GROUPS       warpgroups: 2 or 3                                                      2
// STAGES       tiles of positions in local memory, of which the last two may be in use   4
// DEPTH, FEATURES, PRODUCTS   see planes.clh; PRODUCTS is 1 where KIND is not 0       64, 64, 1
// C_STORED     type of y (common/storage.clh)                                          1
//
// Work-group: 128 * GROUPS work-items. A tile is panels of 64 columns, whose rows of 128 bytes are swizzled (unit.clh). Columns of v
// are rounded up to WIDE, a multiple of 32, in local memory. Local memory: PLANES * 128 * (64 * GROUPS * PANELS(DEPTH) + STAGES
// * 64 * (PANELS(DEPTH) + PANELS(FEATURES))) bytes.
#define KEYS 64
#define NEAR 0
#if KIND
#define WEIGHT_BITS 7.0f
#define LAZY_BITS 8.0f
#define AHEAD_OF_USE (STAGES - 2)
#else
#define WEIGHT_BITS 14.0f
#define LAZY_BITS 0.0f
#define AHEAD_OF_USE (STAGES - 1)
#endif
#include "attention/softmax.clh"
#include "matrix/copies.clh"
#include "matrix/unit.clh"

#define ITEMS (128 * GROUPS)
#define ROWS (64 * GROUPS)
#define WIDE ((FEATURES + 31) / 32 * 32)
#define PANELS(columns) (((columns) + 63) / 64)
#define PANEL 8192  // bytes of 64 rows
#define TILE(columns) (PANELS(columns) * PANEL)
#define QUERIES_BYTES (PLANES * GROUPS * TILE(DEPTH))
#define KEYS_BYTES (PLANES * TILE(DEPTH))
#define STAGE_BYTES (KEYS_BYTES + PLANES * TILE(WIDE))
#define SUMS (WIDE / 2)

// An operand: 64 rows of it, bytes from row to row and to the next 64 rows, and how many rows and bytes of a row there are. What lies
// beyond counts as 0.
typedef struct {
    global const uchar* rows_64;
    long pitch, block;
    int rows, bytes, aligned;
} Source;

// Of rows of 16 bits that are `row` elements apart.
INLINE Source source_of(global const uchar* x, long row, int rows, int columns) {
    Source source = {x, 2 * row, 128 * row, rows, 2 * columns, ((ulong)x & 15) == 0 && (row & 7) == 0};
    return source;
}

// Starts the copy of the 64 rows from row0 on, a multiple of 64, to panels of a tile: name(tiles, to, x, row0, id).
#define COPY_TILE(name, columns)                                                                                    \
    INLINE void name(local uchar* tiles, uint to, const Source x, int row0, int id) {                               \
        global const uchar* const from = x.rows_64 + (row0 / 64) * x.block;                                         \
        const int chunks = (columns) / 8, there = x.rows - row0;                                                    \
        _Pragma("unroll") for (int c = id; c < 64 * chunks; c += ITEMS) {                                           \
            const int row = c / chunks, chunk = c % chunks;                                                         \
            const uint at = to + chunk / 8 * PANEL + unit_at(row, chunk & 7);                                       \
            const uint size = row < there && chunk * 16 < x.bytes ? 16 : 0;                                         \
            global const uchar* const piece = from + (row * x.pitch + chunk * 16);                                  \
            if (!KIND || x.aligned) {                                                                             \
                COPY_16_OF(at, piece, size)                                                                         \
            } else {                                                                                                \
                local ushort* slowly = (local ushort*)(tiles + (at - (uint)tiles));                                 \
                for (int i = 0; i < 8; ++i) slowly[i] = size ? ((global const ushort*)piece)[i] : (ushort)0;        \
            }                                                                                                       \
        }                                                                                                           \
    }
COPY_TILE(copy_depth, DEPTH)
COPY_TILE(copy_wide, WIDE)

// Starts the copy of keys and values from position key0 on.
INLINE void copy_stage(local uchar* tiles, uint to, const Source k, const Source v, int key0, int id) {
#pragma unroll
    for (int p = 0; p < PLANES; ++p) {
        Source k_plane = k, v_plane = v;
        k_plane.rows_64 += p * PLANE_BYTES(DEPTH);
        v_plane.rows_64 += p * PLANE_BYTES(FEATURES);
        copy_depth(tiles, to + p * TILE(DEPTH), k_plane, key0, id);
        copy_wide(tiles, to + KEYS_BYTES + p * TILE(WIDE), v_plane, key0, id);
    }
}

// Where step d of 16 columns begins in a tile whose columns are those of the sums.
#define STEP(tile, d) (UNIT_ROWS((tile) + (d) / 4 * PANEL) + UNIT_STEP(32) * ((d) % 4))
// Weights of 16 positions, the k-th of a tile, times their values in 32 or 64 columns of a panel.
#define VALUES(d, a, panel, k, first, columns)                                                  \
    {                                                                                           \
        const ulong values_ = UNIT_COLUMNS(panel) + UNIT_STEP(2048) * (k);                      \
        if ((columns) == 32) UNIT_32_OF(d, a, values_, first);                                  \
        if ((columns) == 64) UNIT_64_OF(d, a, values_, first);                                  \
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

// Makes the next tile of positions usable, at key0, and starts the copy of that which is AHEAD_OF_USE further.
#define NEXT_TILE                                                                                                  \
    {                                                                                                              \
        COPY_WAIT_BUT(AHEAD_OF_USE - 1)                                                                            \
        UNIT_FENCE                                                                                                 \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                              \
        if (key0 + AHEAD_OF_USE * KEYS < end)                                                                      \
            copy_stage(tiles, stages + (number + AHEAD_OF_USE) % STAGES * STAGE_BYTES, keys, values, key0 + AHEAD_OF_USE * KEYS, id); \
        COPY_COMMIT                                                                                                \
    }

// Of KIND 0, q, k and v are the workspace, whose parts begin at the places that follow them; else these are not read.
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void attention_wgmma(
    global const uchar* q, ulong q_offset, global const uchar* k, ulong k_offset, global const uchar* v, ulong v_offset,
    long k_planes, long v_planes, long q_factors, long k_factors, long v_factors, global const MASK_T* mask, ulong mask_offset,
    global const uint2* seed, ulong seed_offset, global const uint2* step, ulong step_offset, global C_T* y, ulong y_offset,
    global float* lse, ulong lse_offset, const Heads given, int depth, float scale) {
    local uchar tiles[QUERIES_BYTES + STAGES * STAGE_BYTES] __attribute__((aligned(1024)));
    const Heads sizes = given;
    const Dropout dropout = dropout_of(seed + seed_offset, step + step_offset);
    const int id = get_local_id(0), lane = id & 31, warp = id >> 5, warpgroup = id >> 7;
    int head, row0;
    tile_of_group(sizes, ROWS, get_group_id(0), &head, &row0);
    const long q_at = head_start(sizes, head, sizes.q_0, sizes.q_1, sizes.q_2);
    const long k_at = head_start(sizes, head, sizes.k_0, sizes.k_1, sizes.k_2);
    const long v_at = head_start(sizes, head, sizes.v_0, sizes.v_1, sizes.v_2);
    mask += mask_offset + head_start(sizes, head, sizes.mask_0, sizes.mask_1, sizes.mask_2);
    q += q_offset;
    k += k_offset;
    v += v_offset;
#if KIND
    const Source own = source_of(q + 2 * q_at, sizes.q_row, sizes.length, depth);
    const Source keys = source_of(k + 2 * k_at, sizes.k_row, sizes.positions, depth);
    const Source values = source_of(v + 2 * v_at, sizes.v_row, sizes.positions, sizes.features);
#else
    // Strides count blocks, and their rows are all there.
    const int row_bytes = 2 * DEPTH, value_bytes = 2 * FEATURES;
    const Source own = {q + q_at * BLOCK_BYTES(DEPTH), row_bytes, BLOCK_BYTES(DEPTH), (sizes.length + 63) / 64 * 64, row_bytes, 1};
    const Source keys = {k + k_planes + k_at * BLOCK_BYTES(DEPTH), row_bytes, BLOCK_BYTES(DEPTH),
                      (sizes.positions + 63) / 64 * 64, row_bytes, 1};
    const Source values = {v + v_planes + v_at * BLOCK_BYTES(FEATURES), value_bytes, BLOCK_BYTES(FEATURES),
                      (sizes.positions + 63) / 64 * 64, value_bytes, 1};
    global const float* const k_factor = (global const float*)(k + k_factors) + k_at;
    global const float* const v_factor = (global const float*)(v + v_factors) + v_at;
    const int block = min(row0 / 64 + warpgroup, (sizes.length - 1) / 64);
    scale *= ((global const float*)(q + q_factors))[q_at + block];
#endif

    const uint queries = (uint)tiles, stages = queries + QUERIES_BYTES;
#pragma unroll
    for (int i = 0; i < PLANES * GROUPS; ++i) {
        Source plane = own;
        plane.rows_64 += i / GROUPS * PLANE_BYTES(DEPTH);
        copy_depth(tiles, queries + i * TILE(DEPTH), plane, row0 + i % GROUPS * 64, id);
    }
    // The tiles of positions of the work-group, and [own_begin, own_end) of the warpgroup.
    const int own_row0 = row0 + warpgroup * 64, row = own_row0 + (warp & 3) * 16 + (lane >> 2);
    const int begin = positions_begin(sizes, row0, KEYS), end = positions_end(sizes, min(row0 + ROWS, sizes.length));
    int own_begin = positions_begin(sizes, own_row0, KEYS), own_end = positions_end(sizes, own_row0 + 64);
    if (own_row0 >= sizes.length || own_begin >= own_end) own_begin = own_end = end;
#pragma unroll
    for (int i = 0; i < AHEAD_OF_USE; ++i) {
        if (begin + i * KEYS < end) copy_stage(tiles, stages + i * STAGE_BYTES, keys, values, begin + i * KEYS, id);
        COPY_COMMIT
    }
    float made[SUMS], most[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, shrink[2];
#pragma unroll
    for (int i = 0; i < SUMS; ++i) made[i] = 0;
    const uint own_queries = queries + warpgroup * TILE(DEPTH);
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
