// SPDX-License-Identifier: MIT
// matmul.small: products of small matrices, many of them, such as attention in windows. A work-group computes one batch.
//
//             N                C[m, n] = alpha * op(A)[m, k] op(B)[k, n]
//       +---------+            local: both operands whole, as they are stored, each line padded
//     M | RM x RN |            a work-item: RM rows and RN columns of C
//       +---------+
//
// Define               meaning                                                            example
// M, N, K              the sizes of a product                                             49, 32, 49
// RM, RN               rows and columns per work-item, 4 or 8                             8, 4
// TY, TX               work-items that cover the rows and the columns                     7, 8
// THREADS              work-items of a work-group, at least TX * TY                       64
// TA, TB               1 if A lies as [k, m], if B lies as [n, k]                          0, 1
// HAS_RESIDUAL         1 if the epilogue adds a residual r                                0
// EPILOGUE(v, r)       the epilogue of a sum v
// A_BATCH(i), B_BATCH(i)   where the matrices of batch i begin
// A_STORED and so on   types of A, B, C and the residual (common/storage.clh)             0
//
// An operand with lines along k is read as float4 of four steps of k, one for each row (or column) of a work-item, whose
// lines are TY (or TX) apart, so that neighbours read neighbouring lines, whose padding puts them into different banks. An
// operand with lines along m or n is read as float4 of four rows or columns, for one step of k. The sums run over k in order.
// The parameters are those of tiled.cl, of which the sizes and tiles are not read: sizes are constants here.
// Local memory: 4 * (A_LINES * A_LINE + B_LINES * B_LINE) bytes.
#include "common/storage.clh"
#include "matmul/finish_value.clh"

// Sizes in whole float4; the elements beyond are zero.
#define UP4(x) (((x) + 3) / 4 * 4)
#define A_LINES (TA ? UP4(K) : M)
#define A_LINE (TA ? TY * RM + 4 : UP4(K) + 4)
#define A_LENGTH (TA ? M : K)
#define B_LINES (TB ? N : UP4(K))
#define B_LINE (TB ? UP4(K) + 4 : TX * RN + 4)
#define B_LENGTH (TB ? K : N)

// Copies an operand into local memory; what pads its lines, or has no line in memory, is zero. AT_ONCE loads are on their way
// at a time, since a work-group waits for nothing else.
#define AT_ONCE 8
#define LOAD(X)                                                                                          \
    inline void X##_load(global const X##_T* from, local float* to, int id, int lines) {                 \
        for (int first = id; first < X##_LINES * X##_LINE; first += AT_ONCE * THREADS) {                 \
            float value[AT_ONCE];                                                                        \
            _Pragma("unroll") for (int i = 0; i < AT_ONCE; ++i) {                                        \
                const int e = first + i * THREADS, line = e / X##_LINE, place = e % X##_LINE;            \
                const int inside = line < lines && place < X##_LENGTH;                                   \
                value[i] = inside ? X##_AT(from, (ulong)line * X##_LENGTH + place) : 0.0f;               \
            }                                                                                            \
            _Pragma("unroll") for (int i = 0; i < AT_ONCE; ++i) {                                        \
                const int e = first + i * THREADS;                                                       \
                if (e < X##_LINES * X##_LINE) to[e] = value[i];                                          \
            }                                                                                            \
        }                                                                                                \
    }
LOAD(A)
LOAD(B)

// The COUNT lines of an operand that a work-item multiplies, for steps p to p + 3: value[line][step].
// Lines along k: one float4 each. A line beyond the last reads the last one, whose product nobody stores.
inline void along_k(local const float* tile, int line_floats, int first, int apart, int last, int count, int p,
                    float value[][4]) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
        const float4 v = *(local const float4*)(tile + min(first + i * apart, last) * line_floats + p);
        value[i][0] = v.x, value[i][1] = v.y, value[i][2] = v.z, value[i][3] = v.w;
    }
}
// Lines along rows or columns: four neighbours for one step of k.
inline void across_k(local const float* tile, int line_floats, int first, int count, int p, float value[][4]) {
#pragma unroll
    for (int s = 0; s < 4; ++s)
#pragma unroll
        for (int i = 0; i < count; i += 4) {
            const float4 v = *(local const float4*)(tile + (p + s) * line_floats + first + i);
            value[i][s] = v.x, value[i + 1][s] = v.y, value[i + 2][s] = v.z, value[i + 3][s] = v.w;
        }
}

kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void matmul_small(
    global const A_T* a, ulong a_offset, global const B_T* b, ulong b_offset, global const float* bias,
    ulong bias_offset, global const R_T* residual, ulong residual_offset, global C_T* c, ulong c_offset, int m,
    int n, int k, int k_part, int tiles_m, int tiles_n, int batches, long a_batch, long b_batch, float alpha, int has_bias) {
    local float a_tile[A_LINES * A_LINE] __attribute__((aligned(16)));
    local float b_tile[B_LINES * B_LINE] __attribute__((aligned(16)));
    const int id = get_local_id(0), tx = id % TX, ty = id / TX;
    const long batch = get_group_id(0);
    A_load(a + a_offset + A_BATCH(batch), a_tile, id, TA ? K : M);
    B_load(b + b_offset + B_BATCH(batch), b_tile, id, TB ? N : K);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (ty >= TY) return;

    float sum[RM][RN];
#pragma unroll
    for (int i = 0; i < RM; ++i)
#pragma unroll
        for (int j = 0; j < RN; ++j) sum[i][j] = 0.0f;
    for (int p = 0; p < K; p += 4) {
        float u[RM][4], v[RN][4];
        if (TA)
            across_k(a_tile, A_LINE, ty * RM, RM, p, u);
        else
            along_k(a_tile, A_LINE, ty, TY, M - 1, RM, p, u);
        if (TB)
            along_k(b_tile, B_LINE, tx, TX, N - 1, RN, p, v);
        else
            across_k(b_tile, B_LINE, tx * RN, RN, p, v);
#pragma unroll
        for (int s = 0; s < 4; ++s)
#pragma unroll
            for (int i = 0; i < RM; ++i)
#pragma unroll
                for (int j = 0; j < RN; ++j) sum[i][j] += u[i][s] * v[j][s];
    }

    const ulong c_at = (ulong)batch * M * N;
    bias += bias_offset;
    residual += residual_offset + c_at;
    c += c_offset + c_at;
#pragma unroll
    for (int i = 0; i < RM; ++i) {
        const int row = TA ? ty * RM + i : ty + i * TY;
#pragma unroll
        for (int j = 0; j < RN; ++j) {
            const int column = TB ? tx + j * TX : tx * RN + j;
            const ulong at = (ulong)row * N + column;
            if (row < M && column < N) C_PUT(c, at, finish(alpha * sum[i][j], at, column, has_bias, bias, residual));
        }
    }
}
