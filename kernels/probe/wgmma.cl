// SPDX-License-Identifier: MIT
// Whether common/matrix_unit.clh works on this device: one product of 64 x 64 x 64 small integers both ways of B, to be
// compared with the exact result. y[0..4096): B's rows along K; y[4096..8192): B transposed. Row-major results.
#define PRODUCTS 3
#include "common/split_half.clh"
#include "common/matrix_unit.clh"

kernel __attribute__((reqd_work_group_size(128, 1, 1))) void probe(global float* y, ulong y_offset) {
    local uchar tiles[3 * 8192] __attribute__((aligned(1024)));
    const int id = get_local_id(0), warp = id >> 5, lane = id & 31;
    // a[m][k] = (3 m + 5 k) % 7 - 3; b[k][n] = (2 k + 11 n) % 5 - 2.
    for (int i = id; i < 2048; i += 128) {
        const int row = i / 32, k = i % 32 * 2, at = UNIT_AT(row, k / 8) + k % 8 * 2;
        *(local uint*)(tiles + at) =
            split_pack((float)((3 * row + 5 * k) % 7 - 3), (float)((3 * row + 5 * (k + 1)) % 7 - 3));
        *(local uint*)(tiles + 8192 + at) =
            split_pack((float)((2 * k + 11 * row) % 5 - 2), (float)((2 * (k + 1) + 11 * row) % 5 - 2));
        *(local uint*)(tiles + 16384 + at) =
            split_pack((float)((2 * row + 11 * k) % 5 - 2), (float)((2 * row + 11 * (k + 1)) % 5 - 2));
    }
    UNIT_FENCE
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint from = (uint)tiles;
    float rows[32], columns[32];
    for (int i = 0; i < 32; ++i) rows[i] = columns[i] = 0;
    UNIT_BEGIN
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        UNIT_64(rows, UNIT_ROWS(from) + UNIT_STEP(32 * k), UNIT_ROWS(from + 8192) + UNIT_STEP(32 * k), k == 0,
                 0, 0);
        UNIT_64(columns, UNIT_ROWS(from) + UNIT_STEP(32 * k),
                 UNIT_COLUMNS(from + 16384) + UNIT_STEP(2048 * k), k == 0, 0, 1);
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
