// SPDX-License-Identifier: MIT
// Whether the products of halves, or of bfloat16, of matrix/unit_mma.clh work on this device, with a work-group that has
// LOCAL_BYTES of local memory: two products of 64 x 64 x 64 small integers, to be compared with the exact result. Tiles go
// to memory, and by asynchronous copies to the end of the local memory. y[0..4096): B transposed; y[4096..8192): A
// transposed; behind them, 32 KiB for the tiles. Row-major results; NaN where the warps' largest number is wrong, which
// products of floats ask for.
//
// For bfloat16 a power of two that no half reaches multiplies A, and is taken back from B.
//
// Defines: MMA 1; KIND: 1 half, 2 bfloat16; LOCAL_BYTES.
#define WM 1
#define PRODUCTS 3
#include "matrix/round16.clh"
#include "matrix/copies.clh"
#include "matrix/split_tile.clh"
#define PACK JOIN(PACK_, KIND)
#if KIND == 1
#define A_UNIT 1.0f
#define B_UNIT 1.0f
#else
#define A_UNIT 0x1p100f
#define B_UNIT 0x1p-100f
#endif
#define A(m, k) ((float)((3 * (m) + 5 * (k)) % 7 - 3) * A_UNIT)
#define B(k, n) ((float)((2 * (k) + 11 * (n)) % 5 - 2) * B_UNIT)

kernel __attribute__((reqd_work_group_size(128, 1, 1))) void probe(global float* y, ulong y_offset) {
    local uchar tiles[LOCAL_BYTES] __attribute__((aligned(1024)));
    const int id = get_local_id(0), warp = id >> 5, lane = id & 31;
    y += y_offset;
    global uchar* made = (global uchar*)(y + 8192);
    // Rows of A, of A transposed, of B, of B transposed.
    for (int i = id; i < 2048; i += 128) {
        const int row = i / 32, e = i % 32 * 2, at = unit_at(row, e / 8) + e % 8 * 2;
        *(global uint*)(made + at) = PACK(A(row, e), A(row, e + 1));
        *(global uint*)(made + 8192 + at) = PACK(A(e, row), A(e + 1, row));
        *(global uint*)(made + 16384 + at) = PACK(B(e, row), B(e + 1, row));
        *(global uint*)(made + 24576 + at) = PACK(B(row, e), B(row, e + 1));
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    const uint from = (uint)tiles + (LOCAL_BYTES - 32768) / 1024 * 1024;
    for (int i = id; i < 2048; i += 128) COPY_16(from + i * 16, made + i * 16)
    COPY_COMMIT
    COPY_WAIT_BUT(0)
    UNIT_FENCE
    barrier(CLK_LOCAL_MEM_FENCE);
    float b_across[32], a_across[32];
    for (int i = 0; i < 32; ++i) b_across[i] = a_across[i] = 0;
    UNIT_BEGIN
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        HALF_64(b_across, UNIT_ROWS(from) + UNIT_STEP(32 * k), UNIT_COLUMNS(from + 24576) + UNIT_STEP(2048 * k), 0, 1);
        HALF_64(a_across, UNIT_COLUMNS(from + 8192) + UNIT_STEP(2048 * k), UNIT_ROWS(from + 16384) + UNIT_STEP(32 * k),
                1, 0);
    }
    UNIT_COMMIT
    UNIT_WAIT_32(b_across)
    UNIT_WAIT_32(a_across)
#if KIND == 1
    const int right = warp_max((uint)(lane * 7 % 32 + warp)) == 31u + warp;
#else
    const int right = 1;
#endif
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        const int at = (warp * 16 + (lane >> 2) + (i >> 1 & 1) * 8) * 64 + (i >> 2) * 8 + (lane & 3) * 2 + (i & 1);
        y[at] = right ? b_across[i] : NAN;
        y[4096 + at] = right ? a_across[i] : NAN;
    }
}
