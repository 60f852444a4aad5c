// SPDX-License-Identifier: MIT
// attention.matrix, first kernel: q, k and v, and for gradients dy, as blocks of halves (attention/planes.clh).
//
// A work-group of 256 work-items makes one block. The first q_groups groups pack q, the next k_groups k, the next v_groups v,
// the others dy.
// A work-item has every 256th pair of neighbouring elements. Infinities and NaN do not count for the scale, so that they
// change no other row of their block.
//
// Define     meaning                                                                 example
// A_STORED   type of q, k and v (common/storage.clh)                               0
// B_STORED   type of dy                                                            0
//
// Local memory: 1 KiB.
#include "common/storage.clh"
#include "attention/planes.clh"

#define ITEMS 256

// Where the matrices of an operand lie, by the digits of their numbers, and their rows.
typedef struct {
    int digit_1, digit_2;
    long at_0, at_1, at_2, row;
} Source;
INLINE Source source_of(int digit_1, int digit_2, long at_0, long at_1, long at_2, long row) {
    Source source = {digit_1, digit_2, at_0, at_1, at_2, row};
    return source;
}

// Packs block `number` of an operand, whose matrices have `rows` by `columns` elements, `width` columns in halves.
#define PACK(name, X, width)                                                                                             \
    INLINE void name(global const X##_T* x, const Source from, global uchar* to, global float* factors, int number,       \
                     int rows, int columns, local uint* largest, int id) {                                              \
        const int blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS, matrix = number / blocks;                              \
        const int row0 = number % blocks * BLOCK_ROWS, upper = matrix / from.digit_2;                                   \
        x += matrix % from.digit_2 * from.at_2 + upper % from.digit_1 * from.at_1 + upper / from.digit_1 * from.at_0;   \
        float pairs[(width) / 8 * 2];                                                                                   \
        uint most = 0;                                                                                                  \
        _Pragma("unroll") for (int i = 0; i < (width) / 8; ++i) {                                                       \
            const int at = id + i * ITEMS, row = row0 + at / ((width) / 2), column = at % ((width) / 2) * 2;            \
            _Pragma("unroll") for (int j = 0; j < 2; ++j) {                                                             \
                const float value =                                                                                     \
                    row < rows && column + j < columns ? X##_AT(x, row * from.row + column + j) : 0.0f;                   \
                const uint bits = as_uint(value) & 0x7fffffffu;                                                         \
                pairs[2 * i + j] = value;                                                                               \
                most = max(most, bits < 0x7f800000u ? bits : 0u);                                                       \
            }                                                                                                           \
        }                                                                                                               \
        most = group_max(largest, most, id);                                                                            \
        const float scale = split_scale(most);                                                                          \
        global uint* planes = (global uint*)(to + (long)number * BLOCK_BYTES(width));                                   \
        _Pragma("unroll") for (int i = 0; i < (width) / 8; ++i) {                                                       \
            const float low = pairs[2 * i] * scale, high = pairs[2 * i + 1] * scale;                                    \
            const uint upper = split_pack(low, high);                                                                   \
            planes[id + i * ITEMS] = upper;                                                                             \
            if (PLANES == 2) planes[id + i * ITEMS + PLANE_BYTES(width) / 4] = rest_of(low, high, upper);               \
        }                                                                                                               \
        if (id == 0) factors[number] = split_unscale(most);                                                             \
    }

// The largest of all work-items' values.
INLINE uint group_max(local uint* largest, uint value, int id) {
    largest[id] = value;
    for (int half_of = ITEMS / 2; half_of > 0; half_of /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (id < half_of) largest[id] = max(largest[id], largest[id + half_of]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return largest[0];
}
PACK(pack_keys, A, DEPTH)
PACK(pack_values, A, FEATURES)
PACK(pack_gradients, B, FEATURES)

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void attention_pack(
    global const A_T* q, ulong q_offset, global const A_T* k, ulong k_offset, global const A_T* v, ulong v_offset,
    global const B_T* dy, ulong dy_offset, global uchar* planes, ulong planes_offset, int length, int positions, int depth,
    int features, int q_groups, int k_groups, int v_groups, int q_digit_1, int q_digit_2, long q_0, long q_1, long q_2,
    long q_row, int k_digit_1, int k_digit_2, long k_0, long k_1, long k_2, long k_row, int v_digit_1, int v_digit_2,
    long v_0, long v_1, long v_2, long v_row, int dy_digit_1, int dy_digit_2, long dy_0, long dy_1, long dy_2, long dy_row,
    long k_planes, long v_planes, long dy_planes, long q_factors, long k_factors, long v_factors, long dy_factors) {
    local uint largest[ITEMS];
    const int id = get_local_id(0);
    int block = get_group_id(0);
    planes += planes_offset;
    if (block < q_groups) {
        const Source from = source_of(q_digit_1, q_digit_2, q_0, q_1, q_2, q_row);
        pack_keys(q + q_offset, from, planes, (global float*)(planes + q_factors), block, length, depth, largest, id);
        return;
    }
    block -= q_groups;
    if (block < k_groups) {
        const Source from = source_of(k_digit_1, k_digit_2, k_0, k_1, k_2, k_row);
        pack_keys(k + k_offset, from, planes + k_planes, (global float*)(planes + k_factors), block, positions, depth, largest,
                  id);
        return;
    }
    block -= k_groups;
    if (block < v_groups) {
        const Source from = source_of(v_digit_1, v_digit_2, v_0, v_1, v_2, v_row);
        pack_values(v + v_offset, from, planes + v_planes, (global float*)(planes + v_factors), block, positions, features,
                    largest, id);
        return;
    }
    const Source from = source_of(dy_digit_1, dy_digit_2, dy_0, dy_1, dy_2, dy_row);
    pack_gradients(dy + dy_offset, from, planes + dy_planes, (global float*)(planes + dy_factors), block - v_groups, length,
                   features, largest, id);
}
