// SPDX-License-Identifier: MIT
// conv2d_backward_filter.depthwise: the filter gradient of convolutions with few input channels per group, on plain
// images.
//
//     bands of ROWS rows of dy, `lines` per part  ->  THREADS partial sums per tap  ->  one sum per tap
//
// Define                        meaning                                       example
// those of depthwise_block.clh, where y is dy and UP is 1
// GROUPS                        groups of channels                            32
// SUM, MAKE                     input and output channels per group           1, 1
// THREADS                       work-items of a work-group, a power of two    128
// and the epilogue (src/engine/epilogue.hpp).
//
// Work-group: all taps of one output channel and one of its input channels, summed over `lines` bands (counted over all
// images). Work-items sum over blocks of dy. Then the sums are added in a fixed order, in two steps. Part p is written
// to dweight + p * part_stride, and parts_sum.cl adds the parts. Local memory: 4 * TAPS * (THREADS + 9) bytes.
#include "conv2d/depthwise_block.clh"

#define PIECES 8
#define ROW (THREADS + 1)

/// Adds to `sum` a work-item's share of the bands from `first` to before `last`.
INLINE void add_lines(global const float* x, global const float* dy, int first, int last, int id, bool aligned, float* sum) {
    for (uint p = id; p < (uint)(last - first) * STRIPS; p += THREADS) {
        const uint line = first + p / STRIPS;
        const int strip = (int)(p % STRIPS), band = (int)(line % BANDS), image = (int)(line / BANDS);
        global const float* of = dy + (ulong)image * (GROUPS * MAKE) * (Y_H * Y_W);
        global const float* from = x + (ulong)image * (GROUPS * SUM) * (X_H * X_W);
        float d[ROWS * OUTPUTS];
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
            const int oy = band * ROWS + row;
            const bool row_inside = Y_H % ROWS == 0 || oy < Y_H;
#pragma unroll
            for (int e = 0; e < OUTPUTS; e += VY) {
                const int ox = strip * OUTPUTS + e;
                const bool inside = row_inside && (Y_W % OUTPUTS == 0 || ox < Y_W);
                const uint at = inside ? (uint)oy * Y_W + ox : 0u;
                load_vector(VY, of, at, inside, aligned, d + row * OUTPUTS + e);
            }
        }
#pragma unroll
        for (int r = 0; r < SPAN_H; ++r) {
            float v[SPAN_W];
            load_row(from, band * OWN_H, strip * OWN_W, r, aligned, v);
#pragma unroll
            for (int row = 0; row < ROWS; ++row)
#pragma unroll
                for (int ky = 0; ky < KERNEL_H; ++ky) {
                    if (row_met(row, ky) != r) continue;
#pragma unroll
                    for (int kx = 0; kx < KERNEL_W; ++kx)
#pragma unroll
                        for (int e = 0; e < OUTPUTS; ++e)
                            sum[ky * KERNEL_W + kx] += d[row * OUTPUTS + e] * v[column_met(e, kx)];
                }
        }
    }
}

kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void depthwise_filter(
    global const float* x, ulong x_offset, global const float* dy, ulong dy_offset, global float* dweight,
    ulong dweight_offset, int bands, int lines, long part_stride EPILOGUE_PARAMETERS) {
    local float sums[TAPS * ROW], pieces[TAPS * PIECES];
    const int id = get_local_id(0);
    const int filter = (int)(get_group_id(0) % (GROUPS * MAKE * SUM));
    const int part = (int)(get_group_id(0) / (GROUPS * MAKE * SUM));
    const int o = filter / SUM, c = o / MAKE * SUM + filter % SUM;
    // min() avoids a fault of LLVM for NVPTX, which may turn the remainder by 2 of a plain product into a product of
    // bits and then fails to select an instruction.
    const int first = min(part * lines, bands), last = min(bands, first + lines);
    x += x_offset + (ulong)c * (X_H * X_W);
    dy += dy_offset + (ulong)o * (Y_H * Y_W);
    float sum[TAPS];
#pragma unroll
    for (int t = 0; t < TAPS; ++t) sum[t] = 0.0f;
    if (((x_offset | dy_offset) & 3) == 0)
        add_lines(x, dy, first, last, id, true, sum);
    else
        add_lines(x, dy, first, last, id, false, sum);
    dweight += dweight_offset + (ulong)part * part_stride;
#pragma unroll
    for (int t = 0; t < TAPS; ++t) sums[t * ROW + id] = sum[t];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = id; i < TAPS * PIECES; i += THREADS) {
        const int t = i / PIECES, piece = i % PIECES;
        float v = 0.0f;
        for (int n = piece; n < THREADS; n += PIECES) v += sums[t * ROW + n];
        pieces[i] = v;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = id; t < TAPS; t += THREADS) {
        float v = 0.0f;
        for (int n = 0; n < PIECES; ++n) v += pieces[t * PIECES + n];
        const ulong at = (ulong)filter * TAPS + t;
        EPILOGUE(v, at);
        dweight[at] = v;
    }
}
