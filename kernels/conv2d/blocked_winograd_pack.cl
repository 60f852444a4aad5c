// SPDX-License-Identifier: MIT
// Transforms and packs plain 3x3 weights for blocked_winograd.cl:
//
//     [slab, point SPAN_H * SPAN_W, in block, in lane V, O, out lane V]
//
// A slab is O = out_vectors blocks of V output channels. Lanes beyond the channels are zero. The defines V, ROWS, COLUMNS, SPAN_H
// and SPAN_W are those of blocked_winograd.cl.
//
// The source of output channel `o`, input channel `i` and kernel position (h, w) is
//   o*stride_out + i*stride_in + (h0 + h*h_step)*3 + w0 + w*w_step
// as in blocked_pack.cl, so that one kernel serves the convolution and its data gradient.
//
// Work-item: one (slab, in block). Work-group: one work-item. Local memory: none.
#include "common/vectors.clh"
#define VALUE VEC
#include "common/winograd.clh"

/// Transforms the taps [3][3] at g, and writes points `step` floats apart.
INLINE void transform_taps(const VEC* g, global float* to, ulong step) {
    VEC t[SPAN_H * 3];  // columns that are transformed
#pragma unroll
    for (int c = 0; c < 3; ++c) {
        VEC f[SPAN_H];
        JOIN(winograd_weights_, ROWS)(g + c, 3, f);
#pragma unroll
        for (int i = 0; i < SPAN_H; ++i) t[i * 3 + c] = f[i];
    }
#pragma unroll
    for (int i = 0; i < SPAN_H; ++i) {
        VEC f[SPAN_W];
        JOIN(winograd_weights_, COLUMNS)(t + i * 3, 1, f);
#pragma unroll
        for (int c = 0; c < SPAN_W; ++c) AT(to + (ulong)(i * SPAN_W + c) * step) = f[c];
    }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void winograd_pack(global const float* w, ulong w_offset, global float* packed, ulong packed_offset, int out_vectors,
                   int in_blocks, int out, int in, int stride_out, int stride_in, int h0, int h_step, int w0, int w_step)
{
    const int id = get_global_id(0);
    const int slab = id / in_blocks, block = id % in_blocks;
    const ulong step = (ulong)in_blocks * (V * V * out_vectors);
    w += w_offset + h0 * 3 + w0;
    packed += packed_offset + (ulong)slab * (SPAN_H * SPAN_W) * step + (ulong)block * (V * V * out_vectors);
    for (int i = 0; i < V; i++)
        for (int o = 0; o < out_vectors; o++) {
            const int out0 = (slab * out_vectors + o) * V;
            const int outs = block * V + i < in ? clamp(out - out0, 0, V) : 0;
            global const float* from = w + (ulong)out0 * stride_out + (ulong)(block * V + i) * stride_in;
            float taps[9 * V] __attribute__((aligned(4 * V)));
            for (int l = 0; l < V; l++)
                for (int h = 0; h < 3; h++)
                    for (int c = 0; c < 3; c++)
                        taps[(h * 3 + c) * V + l] = l < outs ? from[(ulong)l * stride_out + h * h_step + c * w_step] : 0.0f;
            transform_taps((const VEC*)taps, packed + (ulong)(i * out_vectors + o) * V, step);
        }
}
