// SPDX-License-Identifier: MIT
// 3x3 convolution of stride 1 for CPUs over blocked activations [N, C/V, H, W, V], by Winograd's F(4x4, 3x3)
// (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016): one work-item, wide vectors.
//
// Output is made in tiles of 4 x 4 pixels from 6 x 6 of input. A work-item takes tasks one by one; a task is a
// group of `group_tiles` tiles and a range of slabs (a slab: O blocks of V output channels). In its part of
// `scratch`, which is to stay in the second-level cache, it holds
//
//     v [36][panel][in block][P][V]  the tiles transformed, P a panel, made once a group
//     m [36][O][tile][V]             one slab's products, for each of the 36 frequencies: O blocks of output channels by
//                                    P tiles in registers, as blocked.cl has pixels
//
// and transforms m into pixels of y. Rows of v and m end in one vector too many where it makes their length odd, so that
// the 36 places of a tile do not share a set of the cache.
//
// The points of interpolation are 0, +-1/sqrt 2, +-sqrt 2 and infinity, whose rounding errors are smaller than those of 0,
// +-1, +-2. Serves the gradient of the data as well: dy in place of x, weights flipped.
//
// Inputs: V, P, O, and the epilogue (src/engine/epilogue.hpp). Local memory: none. Weights: see blocked_winograd_pack.cl.
#include "common/vectors.clh"

#define NEAR 0.70710678118654752f
#define FAR 1.41421356237309505f

#define DECLARE_O(o, p) VEC acc_##o##_##p = (VEC)(0.0f);
#define DECLARE_P(p, _) REPEAT_B(O, DECLARE_O, p)
#define WEIGHT_O(o, l) const VEC w_##o = READ(wp + ((l) * O + o) * V);
#define FMA_O(o, p) acc_##o##_##p = fma(w_##o, s, acc_##o##_##p);
#define FMA_P(p, l) { const VEC s = (VEC)(xp[(p) * V + l]); REPEAT_B(O, FMA_O, p) }
#define LANE(l, _) { REPEAT_C(O, WEIGHT_O, l) REPEAT_A(P, FMA_P, l) }
#define STORE_O(o, p) AT(to + ((ulong)(o) * group_tiles + p) * V) = acc_##o##_##p;
#define STORE_P(p, _) REPEAT_B(O, STORE_O, p)
#define ADD_O(o, p) acc_##o##_##p += READ(to + ((ulong)(o) * group_tiles + p) * V);
#define ADD_P(p, _) REPEAT_B(O, ADD_O, p)
#define LANE_STEP 4
// Blocks of input channels that are summed by themselves: the error of a sum grows with its length, and here it would be
// most of the error, twice what the transformations bring.
#define RUN (64 / V)

// Six inputs of a row or column to six frequencies: rows of the transformation's matrix.
#define INPUT_TRANSFORM(d0, d1, d2, d3, d4, d5) \
    const VEC ea = fma(d2, (VEC)(-2.0f), d4), oa = fma(d1, (VEC)(-2.0f), d3); \
    const VEC eb = fma(d2, (VEC)(-0.5f), d4), ob = fma(d1, (VEC)(-0.5f), d3); \
    const VEC f0 = fma(d2, (VEC)(-2.5f), d4 + d0), f5 = fma(d3, (VEC)(-2.5f), d5 + d1); \
    const VEC f1 = fma(oa, (VEC)(NEAR), ea), f2 = fma(oa, (VEC)(-NEAR), ea); \
    const VEC f3 = fma(ob, (VEC)(FAR), eb), f4 = fma(ob, (VEC)(-FAR), eb);

// Six frequencies to four outputs.
#define OUTPUT_TRANSFORM(m0, m1, m2, m3, m4, m5) \
    const VEC sa = m1 + m2, da = m1 - m2, sb = m3 + m4, db = m3 - m4; \
    const VEC y0 = m0 + sa + sb, y1 = fma(da, (VEC)(NEAR), db * FAR); \
    const VEC y2 = fma(sa, (VEC)(0.5f), sb * 2.0f), y3 = fma(da, (VEC)(NEAR * 0.5f), fma(db, (VEC)(FAR * 2.0f), m5));

#define INSIDE(i, c) READ(from + ((i) * x_w + (c)) * V)
#define AT_EDGE(i, c) \
    (h0 + i >= 0 && h0 + i < x_h && w0 + (c) >= 0 && w0 + (c) < x_w ? READ(from + ((long)(i) * x_w + (c)) * V) : (VEC)(0.0f))
#define COLUMN(c, PIXEL) { \
    const VEC d0 = PIXEL(0, c), d1 = PIXEL(1, c), d2 = PIXEL(2, c), d3 = PIXEL(3, c), d4 = PIXEL(4, c), d5 = PIXEL(5, c); \
    INPUT_TRANSFORM(d0, d1, d2, d3, d4, d5) \
    t[c] = f0; t[6 + c] = f1; t[12 + c] = f2; t[18 + c] = f3; t[24 + c] = f4; t[30 + c] = f5; }
#define ROW(i, _) { \
    INPUT_TRANSFORM(t[i * 6], t[i * 6 + 1], t[i * 6 + 2], t[i * 6 + 3], t[i * 6 + 4], t[i * 6 + 5]) \
    global float* const to = v_to + (ulong)(i * 6) * v_row; \
    AT(to) = f0; AT(to + v_row) = f1; AT(to + 2 * v_row) = f2; AT(to + 3 * v_row) = f3; AT(to + 4 * v_row) = f4; \
    AT(to + 5 * v_row) = f5; }
#define PRODUCT(i) READ(from + (ulong)((i) * 6) * m_row)
#define OUT_COLUMN(c, _) { \
    global const float* from = m_from + (ulong)(c) * m_row; \
    const VEC m0 = PRODUCT(0), m1 = PRODUCT(1), m2 = PRODUCT(2), m3 = PRODUCT(3), m4 = PRODUCT(4), m5 = PRODUCT(5); \
    OUTPUT_TRANSFORM(m0, m1, m2, m3, m4, m5) \
    t[c] = y0; t[6 + c] = y1; t[12 + c] = y2; t[18 + c] = y3; }
#define OUT_ROW(i, _) { \
    OUTPUT_TRANSFORM(t[i * 6], t[i * 6 + 1], t[i * 6 + 2], t[i * 6 + 3], t[i * 6 + 4], t[i * 6 + 5]) \
    pixels[i * 4] = y0; pixels[i * 4 + 1] = y1; pixels[i * 4 + 2] = y2; pixels[i * 4 + 3] = y3; }

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void winograd(global const float* x, ulong x_offset, global const float* w, ulong w_offset,
              global const float* bias, ulong bias_offset, global float* y, ulong y_offset,
              global float* scratch, ulong scratch_offset, int items, int tasks, int splits, int slabs, int group_tiles,
              int v_row, int m_row, int tiles, int tile_rows, int tile_columns, int in_blocks, int out, int out_blocks,
              int x_h, int x_w, int y_h, int y_w, int pad_h, int pad_w, int has_bias EPILOGUE_PARAMETERS)
{
    const int id = get_global_id(0);
    x += x_offset;
    w += w_offset;
    bias += bias_offset;
    y += y_offset;
    global float* const v = scratch + scratch_offset + (ulong)id * 36 * ((ulong)v_row + m_row);
    global float* const m = v + (ulong)36 * v_row;
    const int first = (int)((long)tasks * id / items), last = (int)((long)tasks * (id + 1) / items);
    int group = -1;
    for (int task = first; task < last; task++) {
        const int slab0 = (int)((long)slabs * (task % splits) / splits);
        const int slab1 = (int)((long)slabs * (task % splits + 1) / splits);
        const int tile0 = task / splits * group_tiles, count = min(group_tiles, tiles - tile0);
        if (group != task / splits) {
            group = task / splits;
            for (int c = 0; c < in_blocks; c++)
                for (int tile = 0; tile < count; tile++) {
                    const int column = (tile0 + tile) % tile_columns, row = (tile0 + tile) / tile_columns;
                    const int h0 = row % tile_rows * 4 - pad_h, w0 = column * 4 - pad_w;
                    global const float* from = x + (((long)(row / tile_rows) * in_blocks + c) * x_h + h0) * x_w * V + (long)w0 * V;
                    global float* const v_to = v + (((ulong)(tile / P) * in_blocks + c) * P + tile % P) * V;
                    VEC t[36];
                    if (h0 >= 0 && w0 >= 0 && h0 + 6 <= x_h && w0 + 6 <= x_w) {
                        REPEAT_A(6, COLUMN, INSIDE)
                    } else {
                        REPEAT_A(6, COLUMN, AT_EDGE)
                    }
                    REPEAT_A(6, ROW, 0)
                }
        }
        const int panels = (count + P - 1) / P;
        const ulong next = (ulong)in_blocks * (V * O * V);  // from one frequency's weights to the next's
        for (int slab = slab0; slab < slab1; slab++) {
            for (int f = 0; f < 36; f++) {
                global const float* const weights = w + ((ulong)slab * 36 + f) * next;
                for (int panel = 0; panel < panels; panel++) {
                    global const float* xp = v + (ulong)f * v_row + (ulong)panel * in_blocks * (P * V);
                    global const float* wp = weights;
                    global float* const to = m + (ulong)f * m_row + panel * (P * V);
                    for (int c0 = 0; c0 < in_blocks; c0 += RUN) {
                        const int c1 = min(c0 + RUN, in_blocks);
                        REPEAT_A(P, DECLARE_P, 0)
                        for (int c = c0; c < c1; c++) {
                            for (int lane = 0; lane < V; lane += LANE_STEP) {
                                REPEAT_D(LANE_STEP, LANE, 0)
                                xp += LANE_STEP;
                                wp += LANE_STEP * O * V;
                            }
                            xp += (P - 1) * V;
                        }
                        if (c0 != 0) {
                            REPEAT_A(P, ADD_P, 0)
                        }
                        REPEAT_A(P, STORE_P, 0)
                    }
                }
            }
            for (int o = 0; o < O; o++) {
                const int block = slab * O + o;
                if (block >= out_blocks) break;
                const VEC start = has_bias ? read_lanes(bias, block, out) : (VEC)(0.0f);
                for (int tile = 0; tile < count; tile++) {
                    global const float* const m_from = m + ((ulong)o * group_tiles + tile) * V;
                    VEC t[24], pixels[16];
                    REPEAT_A(6, OUT_COLUMN, 0)
                    REPEAT_A(4, OUT_ROW, 0)
                    const int column = (tile0 + tile) % tile_columns * 4, row = (tile0 + tile) / tile_columns;
                    const int h0 = row % tile_rows * 4;
                    const int rows = min(4, y_h - h0), columns = min(4, y_w - column);
                    const ulong tile_at = ((((ulong)(row / tile_rows) * out_blocks + block) * y_h + h0) * y_w + column) * V;
                    for (int i = 0; i < rows; i++)
                        for (int j = 0; j < columns; j++) {
                            const ulong at = tile_at + (ulong)(i * y_w + j) * V;
                            VEC value = pixels[i * 4 + j] + start;
                            EPILOGUE(value, at);
                            if ((block + 1) * V > out) value = keep_lanes(value, out - block * V);
                            AT(y + at) = value;
                        }
                }
            }
        }
    }
}
