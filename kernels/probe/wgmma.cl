// SPDX-License-Identifier: MIT
// Whether the products of halves, or of bfloat16, of matrix/unit_wgmma.clh work on this device: one product of 64 x 64 x 64
// small integers both ways of B, to be compared with the exact result. y[0..4096): B's rows along K; y[4096..8192): B
// transposed. Row-major results.
//
// Halves are multiplied once as engines for float ask for it, once as those for 16 bits do. For bfloat16 a power of two
// that no half reaches multiplies A, and is taken back from B.
//
// Defines: KIND: 1 half, 2 bfloat16.
#define STAGES 2
#include "matrix/round16.clh"
#include "matrix/copies16.clh"
#define PACK JOIN(PACK_, KIND)
#if KIND == 1
#define A_UNIT 1.0f
#define B_UNIT 1.0f
#define ROWS_64(d, a, b, first, ta, tb) UNIT_64(d, a, b, first, ta, tb)
#else
#define A_UNIT 0x1p100f
#define B_UNIT 0x1p-100f
#define ROWS_64(d, a, b, first, ta, tb) HALF_64(d, a, b, ta, tb)
#endif
#define A(m, k) ((float)((3 * (m) + 5 * (k)) % 7 - 3) * A_UNIT)
#define B(k, n) ((float)((2 * (k) + 11 * (n)) % 5 - 2) * B_UNIT)

kernel __attribute__((reqd_work_group_size(128, 1, 1))) void probe(global float* y, ulong y_offset) {
    local uchar tiles[3 * 8192] __attribute__((aligned(1024)));
    const int id = get_local_id(0), warp = id >> 5, lane = id & 31;
    for (int i = id; i < 2048; i += 128) {
        const int row = i / 32, e = i % 32 * 2, at = unit_at(row, e / 8) + e % 8 * 2;
        *(local uint*)(tiles + at) = PACK(A(row, e), A(row, e + 1));
        *(local uint*)(tiles + 8192 + at) = PACK(B(e, row), B(e + 1, row));
        *(local uint*)(tiles + 16384 + at) = PACK(B(row, e), B(row, e + 1));
    }
    UNIT_FENCE
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint from = (uint)tiles;
    float rows[32], columns[32];
    for (int i = 0; i < 32; ++i) rows[i] = columns[i] = 0;
    UNIT_BEGIN
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        ROWS_64(rows, UNIT_ROWS(from) + UNIT_STEP(32 * k), UNIT_ROWS(from + 8192) + UNIT_STEP(32 * k), k == 0, 0, 0);
        HALF_64(columns, UNIT_ROWS(from) + UNIT_STEP(32 * k), UNIT_COLUMNS(from + 16384) + UNIT_STEP(2048 * k), 0, 1);
    }
    UNIT_COMMIT
    UNIT_WAIT_32(rows)
    UNIT_WAIT_32(columns)
    y += y_offset;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        const int at = (warp * 16 + (lane >> 2) + (i >> 1 & 1) * 8) * 64 + (i >> 2) * 8 + (lane & 3) * 2 + (i & 1);
        y[at] = rows[i];
        y[4096 + at] = columns[i];
    }
}
