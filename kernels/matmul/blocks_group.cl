// SPDX-License-Identifier: MIT
// matmul.blocks_group: C = A W^T on GPUs, where the rows of W are GGUF's blocks (matrix/blocks.clh).
//
// A tile of SIDE x SIDE of C. For each 32 weights of k, SIDE rows of A and of W are put into local memory, those of W
// unpacked; a work-item has 4 x 4 elements, whose rows and columns are SIDE / 4 apart.
//
// Define                      meaning                                                     example
// SIDE                        rows and columns of a tile, 32 or 64                        64
// HAS_RESIDUAL                whether the epilogue adds a tensor                          0
// EPILOGUE(v, r)              statements that apply the epilogue to v; r: the residual    v = v + r;
// and those of matrix/blocks.clh.
//
// Local memory: 256 * (SIDE + 1) bytes.
#include "matmul/blocks_put.clh"
#include "matrix/blocks.clh"

#define GROUP (SIDE / 4 * (SIDE / 4))
#define PITCH (SIDE + 1)

// Work-group (i, j): columns from i * SIDE on, of rows from j * SIDE on.
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void matmul_blocks_tile(
    global const float* a, ulong a_offset, global const uchar* b, ulong b_offset, global const float* bias, ulong bias_offset,
    global const float* residual, ulong residual_offset, global float* c, ulong c_offset, int m, int n, int k, int has_bias) {
    local float a_tile[32 * PITCH], b_tile[32 * PITCH];  // [step][row or column]
    const int id = get_local_id(0), x = id % (SIDE / 4), y = id / (SIDE / 4);
    const int left = get_group_id(0) * SIDE, top = get_group_id(1) * SIDE;
    const long row_bytes = (long)(k / BLOCK_WEIGHTS) * BLOCK_BYTES;
    a += a_offset;
    b += b_offset;
    float sum[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = 0.0f;
    for (int k0 = 0; k0 < k; k0 += 32) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = id; i < SIDE * 32; i += GROUP)
            a_tile[i % 32 * PITCH + i / 32] = a[(long)min(top + i / 32, m - 1) * k + k0 + i % 32];
        for (int i = id; i < SIDE * 2; i += GROUP) {
            const int part = k0 / 16 + i % 2;
            float w[16];
            vstore16(block_weights(b + min(left + i / 2, n - 1) * row_bytes + part / BLOCK_PARTS * BLOCK_BYTES, part % BLOCK_PARTS),
                     0, w);
#pragma unroll
            for (int p = 0; p < 16; ++p) b_tile[(i % 2 * 16 + p) * PITCH + i / 2] = w[p];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int p = 0; p < 32; ++p) {
            float a_now[4], b_now[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                a_now[i] = a_tile[p * PITCH + y + i * (SIDE / 4)];
                b_now[i] = b_tile[p * PITCH + x + i * (SIDE / 4)];
            }
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[i][j] += a_now[i] * b_now[j];
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int row = top + y + i * (SIDE / 4), column = left + x + j * (SIDE / 4);
            if (row < m && column < n)
                put(sum[i][j], (long)row * n + column, column, has_bias, c + c_offset, bias + bias_offset,
                    residual + residual_offset);
        }
}
