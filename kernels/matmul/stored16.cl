// SPDX-License-Identifier: MIT
// matmul.wgmma_direct (mma_direct): products of two matrices that are both stored as halves, or both as bfloat16, on tensor
// cores. Nothing is rounded, scaled or transposed in memory; all of K is summed in the tensor core.
//
//             BN columns
//           +-------------------+
//   64 * WM |                   |   C[m, n] = alpha * op(A)[m, k] op(B)[k, n], 64 of K per step
//           |                   |   WM 2: warpgroups one above the other; WM 1: beside each other
//           +-------------------+
//
// Define               meaning                                                            example
// STAGES               see copies16.clh                                                   4
// WM                   rows of the tile in 64                                             2
// BN                   columns of the tile                                                128
// TA, TB               1 if A lies as [k, m], if B lies as [n, k]                          0, 1
// HAS_RESIDUAL         1 if the epilogue adds a residual r                                0
// EPILOGUE(v, r)       the epilogue of a sum v
// A_BATCH(i), B_BATCH(i)   where the matrices of batch i begin
// C_FOURS              1 if lines of C are a multiple of four elements                    1
// A_STORED, B_STORED   type of A and B, the same: 1 half, 2 bfloat16                      1, 1
// C_STORED, R_STORED   see common/storage.clh                                             1, 0
// MMA                  see unit.clh                                                       0
//
// Work-group: one tile of one batch, for one part of K. A step comes to local memory as it lies in memory, by asynchronous
// copies of 16 bytes, and the unit reads either operand with K along its lines, or transposed. Lines of both operands are a
// multiple of eight elements long, and so are the distances of batches. Operands begin at a multiple of 16
// bytes, as all do whose layout does not say otherwise. Sums pass through local memory, so that lines of C are written, and residuals read, side
// by side. With several parts of K group z sums steps [z / batches * k_part, ...) to C part z, and finish.cl adds them.
// Local memory: STAGES * (BM + BN) * 128 bytes, or 4 * BM * (BN + 8) if that is more.
#include "common/storage.clh"
#include "matrix/round16.clh"
#define KIND A_STORED
#define NEAR 0
#include "matrix/copies16.clh"

#define BM (64 * WM)
#define A_BYTES (BM * 128)
#define STAGE ((BM + BN) * 128)
#define WIDTH (BN * WM / 2)
#include "matrix/width.clh"
// A line of sums in local memory, in floats: neighbouring lines in different banks.
#define LINE (BN + 8)
#if STAGES * STAGE > BM * LINE * 4
#define LOCAL_BYTES (STAGES * STAGE)
#else
#define LOCAL_BYTES (BM * LINE * 4)
#endif

// A work-item copies one 16-byte chunk of every 32nd line of a tile. Where it reads first:
#define FROM_ALONG_K(x, row0, limit) ((x) + ((ulong)((row0) + (id >> 3)) * k + k_begin + chunk * 8))
#define FROM_ACROSS_K(x, row0, limit) ((x) + ((ulong)(k_begin + (id >> 3)) * (limit) + (row0) + chunk * 8))
// A step of an operand, of `rows` rows (columns) of the tile from `row0` on.
#define COPY_ALONG_K(to, from, rows, row0, limit, t)                                    \
    {                                                                                        \
        const int live_ = k_begin + (t)*64 + chunk * 8 < k_end;                              \
        _Pragma("unroll") for (int i_ = 0; i_ < (rows) / 32; ++i_) {                         \
            const uint size_ = live_ && (row0) + (id >> 3) + 32 * i_ < (limit) ? 16 : 0;     \
            COPY_16_OF((to) + i_ * 4096, (from) + ((ulong)(32 * i_) * k + (ulong)(t)*64), size_)    \
        }                                                                                    \
    }
#define COPY_ACROSS_K(to, from, rows, row0, limit, t)                                            \
    _Pragma("unroll") for (int i_ = 0; i_ < 2; ++i_) {                                                \
        const int live_ = k_begin + (t)*64 + (id >> 3) + 32 * i_ < k_end;                             \
        _Pragma("unroll") for (int j_ = 0; j_ < (rows) / 64; ++j_) {                                  \
            const uint size_ = live_ && (row0) + j_ * 64 + chunk * 8 < (limit) ? 16 : 0;              \
            COPY_16_OF((to) + i_ * 4096 + j_ * 8192, (from) + ((ulong)((t)*64 + 32 * i_) * (limit) + j_ * 64), size_) \
        }                                                                                             \
    }

#if TA
#define FROM_A FROM_ACROSS_K
#define COPY_A COPY_ACROSS_K
#define A_LIES UNIT_COLUMNS
#define A_NEXT UNIT_STEP(2048)
#else
#define FROM_A FROM_ALONG_K
#define COPY_A COPY_ALONG_K
#define A_LIES UNIT_ROWS
#define A_NEXT UNIT_STEP(32)
#endif
#if TB
#define FROM_B FROM_ALONG_K
#define COPY_B COPY_ALONG_K
#define B_LIES UNIT_ROWS
#define B_NEXT UNIT_STEP(32)
#define B_WAY 0
#else
#define FROM_B FROM_ACROSS_K
#define COPY_B COPY_ACROSS_K
#define B_LIES UNIT_COLUMNS
#define B_NEXT UNIT_STEP(2048)
#define B_WAY 1
#endif

// Statements of the kernel, on its locals.

#define COPY(t, stage)                                             \
    {                                                              \
        COPY_A(to + (stage)*STAGE, a_from, BM, m0, m, t)           \
        COPY_B(to + (stage)*STAGE + A_BYTES, b_from, BN, n0, n, t) \
    }

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void matmul_stored16(
    global const A_T* a, ulong a_offset, global const B_T* b, ulong b_offset, global const float* bias,
    ulong bias_offset, global const R_T* residual, ulong residual_offset, global C_T* c, ulong c_offset, int m,
    int n, int k, int k_part, int tiles_m, int tiles_n, int batches, long a_batch, long b_batch, float alpha,
    int has_bias) {
    local uchar tiles[LOCAL_BYTES] __attribute__((aligned(1024)));
    const uint tiles_at = (uint)tiles;
    const int id = get_local_id(0), warp = id >> 5, lane = id & 31, warpgroup = id >> 7;
    const int z = (int)get_group_id(0) / (tiles_m * tiles_n), tile = (int)get_group_id(0) % (tiles_m * tiles_n);
    const int m0 = tile % tiles_m * BM, n0 = tile / tiles_m * BN;
    const long batch = z % batches;
    const int k_begin = z / batches * k_part, k_end = min(k, k_begin + k_part);
    const int first = 0, last = (k_end - k_begin + 63) / 64;
    a += a_offset + A_BATCH(batch);
    b += b_offset + B_BATCH(batch);

    const int chunk = id & 7;
    const uint to = tiles_at + unit_at(id >> 3, chunk);
    global const ushort* a_from = (global const ushort*)FROM_A(a, m0, m);
    global const ushort* b_from = (global const ushort*)FROM_B(b, n0, n);

#define A_TILE(at) A_LIES(at + (WM == 2 ? warpgroup * 8192 : 0))
#define B_TILE(at) B_LIES(at + A_BYTES + (WM == 2 ? 0 : warpgroup * (WIDTH * 128)))
#define A_WAY TA
#define PAIRS_OF_64 0
#include "matrix/pipeline16.clh"

    // Nobody reads the tiles any more.
    local float* lines = (local float*)tiles;
    barrier(CLK_LOCAL_MEM_FENCE);
    {
        const int row = (WM == 2 ? warpgroup * 64 : 0) + (warp & 3) * 16 + (lane >> 2);
        const int column = (WM == 2 ? 0 : warpgroup * WIDTH) + (lane & 3) * 2;
#pragma unroll
        for (int i = 0; i < SUMS / 2; ++i)
            *(local float2*)(lines + (row + (i & 1) * 8) * LINE + column + i / 2 * 8) = (float2)(sum[2 * i], sum[2 * i + 1]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    bias += bias_offset;
    residual += residual_offset;
    global JOIN(STORED_, C_STORED)* made = (global JOIN(STORED_, C_STORED)*)c + c_offset;
    const ulong first_row = (ulong)z * m;
#if C_FOURS
    const int column = id % (BN / 4) * 4;
    if (n0 + column < n) {
        float offsets[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) offsets[j] = has_bias ? bias[n0 + column + j] : 0.0f;
        // What is added is read for several rows before any is written: the compiler cannot know that C is none of it.
#define AT_ONCE 8
        for (int i = 0; i < BM * BN / 1024; i += AT_ONCE) {
            float v[AT_ONCE][4];
#pragma unroll
            for (int l = 0; l < AT_ONCE; ++l) {
                const int row = id / (BN / 4) + (i + l) * (1024 / BN);
                const float4 s = *(local const float4*)(lines + row * LINE + column);
                v[l][0] = s.x;
                v[l][1] = s.y;
                v[l][2] = s.z;
                v[l][3] = s.w;
#if HAS_RESIDUAL
                const ulong from = (first_row + min(m0 + row, m - 1)) * n + n0 + column;
#endif
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    v[l][j] = v[l][j] * alpha + offsets[j];
#if HAS_RESIDUAL
                    const float r = R_AT(residual, from + j);
#endif
                    EPILOGUE(v[l][j], r)
                }
            }
#pragma unroll
            for (int l = 0; l < AT_ONCE; ++l) {
                const int row = id / (BN / 4) + (i + l) * (1024 / BN);
                if (m0 + row < m)
                    JOIN(put_4_, C_STORED)(v[l][0], v[l][1], v[l][2], v[l][3],
                                           made + (first_row + m0 + row) * n + n0 + column);
            }
        }
    }
#else
    const int column = id % BN;
    if (n0 + column < n) {
        const float offset = has_bias ? bias[n0 + column] : 0.0f;
        for (int row = id / BN; row < BM && m0 + row < m; row += 256 / BN) {
            const ulong at = (first_row + m0 + row) * n + n0 + column;
            float v = lines[row * LINE + column] * alpha + offset;
#if HAS_RESIDUAL
            const float r = R_AT(residual, at);
#endif
            EPILOGUE(v, r)
            JOIN(put_, C_STORED)(v, made + at);
        }
    }
#endif
}
