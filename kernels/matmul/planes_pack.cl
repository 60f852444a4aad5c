// SPDX-License-Identifier: MIT
// matmul.wgmma_matrix_planes (mma_matrix_planes), first kernel: splits both operands into halves (matrix/halves.clh), as
// planes.cl reads them. A line is a row of A or a column of B. An operand becomes blocks of 64 lines and 64 of K:
//
//             64 of K
//           +---------+   [tile of 64 lines][block of 64 of K][plane: upper, lower][64 lines * 128 bytes]
//  64 lines |         |   with the 16-byte chunks of a line where unit_at (matrix/unit.clh) has them, zeros beyond the operand
//           +---------+   behind all blocks: [tile][block][64] floats, which undo the scale of a line's 64 of K
//
// Chunk c of a line holds the elements c, c + 8, ..., c + 56 of the 64, in both operands alike, so that neighbours read
// neighbouring elements. Columns of B are in the order column_at, which gives a work-item of planes.cl four columns beside
// each other.
//
// Define               meaning                                                            example
// TA, TB               1 if A lies as [k, m], if B lies as [n, k]                          0, 1
// PRODUCTS             3: exact float; 1: tf32, of upper halves alone (halves.clh)        3
// A_STORED, B_STORED   types of A and B (common/storage.clh)                              0
//
// Work-group: 256 work-items and one block. The first `a_groups` groups pack A, the others B.
// Local memory: PLANES * 8192 + 1024 bytes.
#include "common/storage.clh"
#include "matrix/halves.clh"
#include "matrix/unit.clh"

// The column that lies at place p of a tile, and the place of column c.
INLINE int column_at(int p) {
    return (p & 48) | (p >> 1 & 3) << 2 | (p >> 3 & 1) << 1 | (p & 1);
}
INLINE int place_of(int c) {
    return (c & 48) | (c >> 1 & 1) << 3 | (c >> 2 & 3) << 1 | (c & 1);
}
INLINE int same(int p) {
    return p;
}

// Eight scaled values to a chunk of the upper halves, and to that of the lower halves 8192 bytes behind.
inline void put_chunk(const float* v, float scale, local uchar* to) {
    uint upper[4], lower[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float x = v[2 * i] * scale, y = v[2 * i + 1] * scale;
        SPLIT_PAIR(x, y, upper[i], lower[i])
    }
    *(local uint4*)to = (uint4)(upper[0], upper[1], upper[2], upper[3]);
#if PLANES == 2
    *(local uint4*)(to + 8192) = (uint4)(lower[0], lower[1], lower[2], lower[3]);
#endif
}

// A block of an operand stored as [lines, k]: eight work-items a line, a chunk each.
#define PACK_ALONG_K(X, ORDER, UNSCALE)                                                                                 \
    inline void X##_pack(global const X##_T* x, local uchar* block, local uint* largest, global float* factors, int lines, \
                         int k, int line0, int k0, int id) {                                                             \
        const int chunk = id & 7;                                                                                        \
        _Pragma("unroll") for (int place = id >> 3; place < 64; place += 32) {                                           \
            const int line = line0 + ORDER(place);                                                                       \
            float v[8];                                                                                                  \
            uint most = 0;                                                                                               \
            _Pragma("unroll") for (int i = 0; i < 8; ++i) {                                                              \
                const int at = k0 + chunk + 8 * i;                                                                       \
                v[i] = line < lines && at < k ? X##_AT(x, (ulong)line * k + at) : 0.0f;                                  \
                most = max(most, as_uint(v[i]) & 0x7fffffffu);                                                           \
            }                                                                                                            \
            _Pragma("unroll") for (int by = 1; by < 8; by *= 2) {                                                        \
                uint other;                                                                                              \
                SHUFFLE_XOR(other, most, by)                                                                             \
                most = max(most, other);                                                                                 \
            }                                                                                                            \
            put_chunk(v, split_scale(most), block + unit_at(place, chunk));                                              \
            if (chunk == 0) factors[place] = UNSCALE(most);                                                              \
        }                                                                                                                \
    }
// A block of an operand stored as [k, lines]: four work-items a line, two chunks each.
#define PACK_ACROSS_K(X, PLACE, UNSCALE)                                                                                \
    inline void X##_pack(global const X##_T* x, local uchar* block, local uint* largest, global float* factors, int lines, \
                         int k, int line0, int k0, int id) {                                                             \
        const int line = id & 63, chunk = id / 64 * 2, place = PLACE(line);                                              \
        float v[16];                                                                                                     \
        uint most = 0;                                                                                                   \
        _Pragma("unroll") for (int i = 0; i < 16; ++i) {                                                                 \
            const int at = k0 + chunk + i / 8 + i % 8 * 8;                                                               \
            v[i] = line0 + line < lines && at < k ? X##_AT(x, (ulong)at * lines + line0 + line) : 0.0f;                  \
            most = max(most, as_uint(v[i]) & 0x7fffffffu);                                                               \
        }                                                                                                                \
        largest[id] = most;                                                                                              \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                                    \
        _Pragma("unroll") for (int i = 0; i < 4; ++i) most = max(most, largest[i * 64 + line]);                          \
        put_chunk(v, split_scale(most), block + unit_at(place, chunk));                                                  \
        put_chunk(v + 8, split_scale(most), block + unit_at(place, chunk + 1));                                          \
        if (id < 64) factors[place] = UNSCALE(most);                                                                     \
    }
#if TA
PACK_ACROSS_K(A, same, split_unscale)
#else
PACK_ALONG_K(A, same, split_unscale)
#endif
#if TB
PACK_ALONG_K(B, column_at, split_unscale_cut)
#else
PACK_ACROSS_K(B, place_of, split_unscale_cut)
#endif

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void planes_pack(
    global const A_T* a, ulong a_offset, global const B_T* b, ulong b_offset, global uchar* planes, ulong planes_offset,
    int m, int n, int k, int blocks, int a_groups, long a_factors, long b_planes, long b_factors) {
    local uchar tile[PLANES * 8192] __attribute__((aligned(16)));
    local uint largest[256];
    const int id = get_local_id(0), group = get_group_id(0);
    const int second = group >= a_groups, at = second ? group - a_groups : group;
    const int line0 = at / blocks * 64, k0 = at % blocks * 64;
    planes += planes_offset;
    global float* factors = (global float*)(planes + (second ? b_factors : a_factors)) + (long)at * 64;
    if (second)
        B_pack(b + b_offset, tile, largest, factors, n, k, line0, k0, id);
    else
        A_pack(a + a_offset, tile, largest, factors, m, k, line0, k0, id);
    barrier(CLK_LOCAL_MEM_FENCE);
    global uchar* to = planes + (second ? b_planes : 0) + (long)at * (PLANES * 8192) + id * 16;
#pragma unroll
    for (int i = 0; i < PLANES * 2; ++i) *(global uint4*)(to + i * 4096) = *(local uint4*)(tile + id * 16 + i * 4096);
}
