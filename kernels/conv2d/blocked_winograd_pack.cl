// SPDX-License-Identifier: MIT
// Transforms and packs plain 3x3 weights for blocked_winograd.cl: [slab, frequency 36, in block, in lane V, O, out lane V],
// where a slab is O blocks of V output channels. Lanes beyond the channels are zero.
//
// The source of output channel `o`, input channel `i` and kernel position (h, w) is
//   o*stride_out + i*stride_in + (h0 + h*h_step)*3 + w0 + w*w_step
// as in blocked_pack.cl, so that one kernel serves the convolution and its data gradient. A work-item packs one
// (slab, in block). Inputs: V, O. Local memory: none.
#include "common/vectors.clh"

// Three taps to six frequencies: the powers of each point over the product of its distances from the others.
#define A_1 0.47140452079103168f
#define B_1 0.23570226039551584f
#define WEIGHT_TRANSFORM(g0, g1, g2) \
    const VEC ea = fma(g2, (VEC)(-1.0f / 3), g0 * (-2.0f / 3)), eb = fma(g2, (VEC)(1.0f / 3), g0 * (1.0f / 6)); \
    const VEC f0 = g0, f1 = fma(g1, (VEC)(-A_1), ea), f2 = fma(g1, (VEC)(A_1), ea); \
    const VEC f3 = fma(g1, (VEC)(B_1), eb), f4 = fma(g1, (VEC)(-B_1), eb), f5 = g2;
#define COLUMN(c, _) { WEIGHT_TRANSFORM(g[c], g[3 + c], g[6 + c]) \
    t[c] = f0; t[3 + c] = f1; t[6 + c] = f2; t[9 + c] = f3; t[12 + c] = f4; t[15 + c] = f5; }
#define ROW(i, _) { WEIGHT_TRANSFORM(t[i * 3], t[i * 3 + 1], t[i * 3 + 2]) \
    global float* const at = to + (ulong)(i * 6) * step; \
    AT(at) = f0; AT(at + step) = f1; AT(at + 2 * step) = f2; AT(at + 3 * step) = f3; AT(at + 4 * step) = f4; AT(at + 5 * step) = f5; }

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void winograd_pack(global const float* w, ulong w_offset, global float* packed, ulong packed_offset, int in_blocks,
                   int out, int in, int stride_out, int stride_in, int h0, int h_step, int w0, int w_step)
{
    const int id = get_global_id(0);
    const int slab = id / in_blocks, block = id % in_blocks;
    const ulong step = (ulong)in_blocks * (V * O * V);
    w += w_offset + h0 * 3 + w0;
    packed += packed_offset + (ulong)slab * 36 * step + (ulong)block * (V * O * V);
    for (int i = 0; i < V; i++)
        for (int o = 0; o < O; o++) {
            const int out0 = (slab * O + o) * V;
            const int outs = block * V + i < in ? clamp(out - out0, 0, V) : 0;
            global const float* from = w + (ulong)out0 * stride_out + (ulong)(block * V + i) * stride_in;
            float taps[9 * V] __attribute__((aligned(4 * V)));
            for (int l = 0; l < V; l++)
                for (int h = 0; h < 3; h++)
                    for (int c = 0; c < 3; c++)
                        taps[(h * 3 + c) * V + l] = l < outs ? from[(ulong)l * stride_out + h * h_step + c * w_step] : 0.0f;
            const VEC* g = (const VEC*)taps;
            VEC t[18];
            global float* const to = packed + (ulong)(i * O + o) * V;
            REPEAT_A(3, COLUMN, 0)
            REPEAT_A(6, ROW, 0)
        }
}
