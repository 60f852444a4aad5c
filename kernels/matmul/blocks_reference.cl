// SPDX-License-Identifier: MIT
// matmul.blocks_reference: C = A W^T, where the rows of W are GGUF's blocks (matrix/blocks.clh).
//
// Define                      meaning                                                     example
// HAS_RESIDUAL                whether the epilogue adds a tensor                          0
// EPILOGUE(v, r)              statements that apply the epilogue to v; r: the residual    v = v + r;
// and those of matrix/blocks.clh.
//
// Work-item: one element of C. It sums the products of a block's part and then adds these sums. Local memory: none.
#include "matrix/blocks.clh"

kernel void matmul_blocks_reference(global const float* a, ulong a_offset, global const uchar* b, ulong b_offset,
                                    global const float* bias, ulong bias_offset, global const float* residual,
                                    ulong residual_offset, global float* c, ulong c_offset, long count, int n, int k,
                                    int has_bias) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const long column = at % n, row = at / n;
    const int blocks = k / BLOCK_WEIGHTS;
    a += a_offset + row * k;
    b += b_offset + column * blocks * BLOCK_BYTES;
    float v = 0.0f;
    for (int block = 0; block < blocks; ++block, b += BLOCK_BYTES)
        for (int part = 0; part < BLOCK_PARTS; ++part, a += 16) {
            const float16 products = vload16(0, a) * block_weights(b, part);
            const float8 eight = products.lo + products.hi;
            const float4 four = eight.lo + eight.hi;
            v += (four.x + four.z) + (four.y + four.w);
        }
    if (has_bias) v += bias[bias_offset + column];
#if HAS_RESIDUAL
    const float r = residual[residual_offset + at];
#endif
    EPILOGUE(v, r)
    c[c_offset + at] = v;
}
