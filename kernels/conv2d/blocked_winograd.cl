// SPDX-License-Identifier: MIT
// conv2d.blocked_winograd and conv2d_backward_data.blocked_winograd: 3x3 convolution of stride 1 on CPUs of blocked
// activations [N, C/V, H, W, V], by Winograd's F(ROWS x COLUMNS, 3x3) (common/winograd.clh).
//
//     tile of x                                     tile of y
//     SPAN_H x SPAN_W pixels -> as many points  ->  ROWS x COLUMNS pixels
//
// Define           meaning                                               example
// V                lanes of a vector = channels of a block               16
// O, P             blocks of output channels and tiles in registers      2, 14
// ROWS, COLUMNS    pixels of a tile: 2, 4 or 6                           4, 4
// SPAN_H, SPAN_W   ROWS + 2, COLUMNS + 2                                 6, 6
// and the epilogue (src/engine/epilogue.hpp). Weights: see blocked_winograd_pack.cl.
//
// Work-item: several tasks, one after the other. A task is a group of `group_tiles` tiles and a range of slabs, where a slab
// is O blocks of V output channels. The work-item's part of `scratch`, which should stay in the L2 cache, contains
//
//     v [point][panel][in block][panel_tiles][V]  the transformed tiles; computed once per group
//     m [point][O][tile][V]             the products of one slab for each of the SPAN_H * SPAN_W points. They are computed
//                                       with O blocks of output channels by P tiles in registers, like pixels in blocked.cl
//
// A panel has P, HALF or QUARTER tiles, whichever suits their number, and the last one of a group is computed with fewer if it has
// no more.
//
// Then m is transformed to pixels of y. Rows of v and m have an odd number of vectors, so that the places of a tile are in
// different cache sets.
//
// The gradient of the data uses the same kernel: dy is read instead of x, and weights are flipped.
// Work-group: one work-item. Local memory: none.
#include "common/vectors.clh"
#define VALUE VEC
#include "common/winograd.clh"
#include "conv2d/blocked_winograd_tile.clh"
#include "conv2d/blocked_sums.clh"
#include "conv2d/tile_sizes.clh"

#define POINTS (SPAN_H * SPAN_W)

#define LANE_STEP 4
// Blocks of input channels that are summed separately. The error of a sum grows with its length. A single sum over all
// blocks would be the largest error here, twice that of the transformations.
#define RUN (64 / V)

// The products of one point for O blocks of output channels and the first `count` tiles of the panel at xp, added up over the
// input channels. It is a macro, since compilers keep the sums of a function whose loops depend on a parameter in memory.
#define MULTIPLY_PANEL(count) \
    for (int c0 = 0; c0 < in_blocks; c0 += RUN) { \
        const int c1 = min(c0 + RUN, in_blocks); \
        VEC acc[O * (count)]; \
        FOR_SUMS(p, (count)) acc[o * (count) + p] = (VEC)(0.0f); \
        for (int c = c0; c < c1; c++) { \
            for (int lane = 0; lane < V; lane += LANE_STEP) { \
                _Pragma("unroll") for (int l = 0; l < LANE_STEP; ++l) { \
                    VEC w_l[O]; \
                    read_vectors(wp + l * O * V, V, w_l); \
                    _Pragma("unroll") for (int p = 0; p < (count); ++p) add_products(acc + p, (count), w_l, xp[p * V + l]); \
                } \
                xp += LANE_STEP; \
                wp += LANE_STEP * O * V; \
            } \
            xp += (panel_tiles - 1) * V; \
        } \
        FOR_SUMS(p, (count)) { \
            global float* const sum = to + ((ulong)o * group_tiles + p) * V; \
            AT(sum) = c0 != 0 ? acc[o * (count) + p] + vec_at(sum) : acc[o * (count) + p]; \
        } \
    }

/// The pixels of a tile from the products of its points, which are `row_step` floats apart.
INLINE void transform_products(global const float* from, ulong row_step, VEC* pixels) {
    VEC t[ROWS * SPAN_W];  // columns that are transformed
#pragma unroll
    for (int c = 0; c < SPAN_W; ++c) {
        VEC d[SPAN_H], f[ROWS];
#pragma unroll
        for (int i = 0; i < SPAN_H; ++i) d[i] = vec_at(from + (ulong)(i * SPAN_W + c) * row_step);
        JOIN(winograd_output_, ROWS)(d, 1, f);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) t[i * SPAN_W + c] = f[i];
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i) JOIN(winograd_output_, COLUMNS)(t + i * SPAN_W, 1, pixels + i * COLUMNS);
}

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void winograd(global const float* x, ulong x_offset, global const float* w, ulong w_offset,
              global const float* bias, ulong bias_offset, global float* y, ulong y_offset,
              global float* scratch, ulong scratch_offset, int items, int tasks, int splits, int slabs,
              int panel_tiles, int group_tiles, int v_row, int m_row, int tiles, int tile_rows, int tile_columns, int in_blocks, int out, int out_blocks,
              int x_h, int x_w, int y_h, int y_w, int pad_h, int pad_w, int has_bias EPILOGUE_PARAMETERS)
{
    const int id = get_global_id(0);
    x += x_offset;
    w += w_offset;
    bias += bias_offset;
    y += y_offset;
    global float* const v = scratch + scratch_offset + (ulong)id * POINTS * ((ulong)v_row + m_row);
    global float* const m = v + (ulong)POINTS * v_row;
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
                    const int h0 = row % tile_rows * ROWS - pad_h, w0 = column * COLUMNS - pad_w;
                    global const float* const image = x + ((ulong)(row / tile_rows) * in_blocks + c) * ((ulong)x_h * x_w * V);
                    global const float* from = image + ((long)h0 * x_w + w0) * V;
                    global float* const to = v + (((ulong)(tile / panel_tiles) * in_blocks + c) * panel_tiles + tile % panel_tiles) * V;
                    int stride = x_w * V;
                    if (h0 < 0 || w0 < 0 || h0 + SPAN_H > x_h || w0 + SPAN_W > x_w) {
                        // A tile at an edge is copied, with zeros around it, to m, whose contents are no longer needed.
                        copy_tile(image, h0, w0, x_h, x_w, SPAN_H, SPAN_W, m);
                        from = m;
                        stride = SPAN_W * V;
                    }
                    transform_tile(from, stride, to, v_row);
                }
        }
        const int panels = (count + panel_tiles - 1) / panel_tiles;
        const ulong next = (ulong)in_blocks * (V * O * V);  // from one point's weights to the next point's
        for (int slab = slab0; slab < slab1; slab++) {
            for (int point = 0; point < POINTS; point++) {
                global const float* const weights = w + ((ulong)slab * POINTS + point) * next;
                for (int panel = 0; panel < panels; panel++) {
                    global const float* xp = v + (ulong)point * v_row + (ulong)panel * in_blocks * panel_tiles * V;
                    global const float* wp = weights;
                    global float* const to = m + (ulong)point * m_row + panel * panel_tiles * V;
                    const int left = min(panel_tiles, count - panel * panel_tiles);
                    if (left > HALF) {
                        MULTIPLY_PANEL(P)
                    } else if (left > QUARTER) {
                        MULTIPLY_PANEL(HALF)
                    } else {
                        MULTIPLY_PANEL(QUARTER)
                    }
                }
            }
            for (int o = 0; o < O; o++) {
                const int block = slab * O + o;
                if (block >= out_blocks) break;
                const VEC start = has_bias ? read_lanes(bias, block, out) : (VEC)(0.0f);
                for (int tile = 0; tile < count; tile++) {
                    global const float* const m_from = m + ((ulong)o * group_tiles + tile) * V;
                    VEC pixels[ROWS * COLUMNS];
                    transform_products(m_from, m_row, pixels);
                    const int column = (tile0 + tile) % tile_columns * COLUMNS, row = (tile0 + tile) / tile_columns;
                    const int h0 = row % tile_rows * ROWS;
                    const int rows = min(ROWS, y_h - h0), columns = min(COLUMNS, y_w - column);
                    const ulong tile_at = ((((ulong)(row / tile_rows) * out_blocks + block) * y_h + h0) * y_w + column) * V;
                    for (int i = 0; i < rows; i++)
                        for (int j = 0; j < columns; j++) {
                            const ulong at = tile_at + (ulong)(i * y_w + j) * V;
                            VEC value = pixels[i * COLUMNS + j] + start;
                            EPILOGUE(value, at);
                            if ((block + 1) * V > out) value = keep_lanes(value, out - block * V);
                            AT(y + at) = value;
                        }
                }
            }
        }
    }
}
