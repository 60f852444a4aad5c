// SPDX-License-Identifier: MIT
// conv2d.blocked and conv2d_backward_data.blocked: direct convolution on CPUs of blocked activations [N, C/B, H, W, B].
//
//            P pixels of a row
//          +----+----+- -+----+
// O vectors|    |    |   |    |     acc[o][p] += w[o] * splat(x[p][lane])
// of V     +----+----+- -+----+         over input blocks, kernel rows, kernel columns and lanes
// channels |    |    |   |    |     O * P accumulators, each in a register
//          +----+----+- -+----+
//
// Define   meaning                                                           example
// B        channels of a block: 4, 8 or 16                                   16
// V        lanes of a vector: B, or B/2 for groups of half blocks            16
// O, P     vectors of output channels and pixels of the tile                 2, 14
// S        columns of x from one pixel to the next                           1
// DIRECT   1 for a 1x1 kernel without stride and padding; the image is one row   0
// XS       pixels of the private array (unused with DIRECT)                 29
// ACROSS   1 if the groups of a grouped convolution do not fill whole blocks     0
// LANE_STEP lanes of x for which products are unrolled; divides B            4
// and the epilogue (src/engine/epilogue.hpp). Weights: see blocked_pack.cl and, with ACROSS, blocked_pack_across.cl.
//
// Work-item: `tiles_per_item` consecutive tiles of one slab of O vectors. Tiles at the end of a row overlap their neighbour
// and store only their own pixels. A tile reads its piece of an input row in place. If the piece extends beyond the image, it
// is copied to a private array with zeros at the ends.
//
// A work-item processes `chunk` input blocks at a time, so that their weights stay in the L2 cache, and prefetches the weights
// of the next chunk. Small images use each weight only a few times, and without prefetching the loads would take longer than
// the products. Between chunks the partial sums are stored in y. Each chunk is summed separately, because the rounding error
// of a sum grows with its length. Rows of x that the next tile is the first to read are prefetched, too.
//
// The gradient of the data uses the same kernel: dy is read instead of x, and weights are flipped. With stride s each phase
// (row % s, column % s) of dx is a separate convolution, which is written every y_row_step rows and y_column_step columns.
//
// With ACROSS a slab's vectors may have channels of several groups. (Half blocks do not: their slabs belong to one group, but its
// input channels may begin and end within a block.) It reads the input channels [first, end) of these groups,
// which are whole steps of LANE_STEP lanes, but not always whole blocks. Weights between channels of different groups are zero.
// Like Winograd's method, which mixes pixels, this lets an infinity or a NaN of x reach outputs that do not depend on it: those
// of another group that share a block with outputs that do.
//
// Work-group: one work-item. Local memory: none.
#include "common/inline.clh"
#include "common/vectors.clh"
#include "conv2d/blocked_sums.clh"

// The first lane that a slab reads of input block c, the number of these lanes, and that of the lanes before block c.
#if ACROSS
#include "conv2d/blocked_reach.clh"
#define LANE0(c) max(first - (c) * B, 0)
#define LANE_COUNT(c) (min((c) * B + B, end) - max((c) * B, first))
#define LANES_BEFORE(c) (max((c) * B, first) - first)
#else
#define LANE0(c) 0
#define LANE_COUNT(c) B
#define LANES_BEFORE(c) ((c) * B)
#endif

// Copies `span` pixels of a row to `piece`, with zeros in place of those outside of [before, until).
INLINE void copy_piece(global const float* from, int before, int until, int span, float* piece) {
    for (int i = 0; i < before * B; i += V) *(VEC*)(piece + i) = (VEC)(0.0f);
    for (int i = before * B; i < until * B; i += V) *(VEC*)(piece + i) = vec_at(from + i);
    for (int i = until * B; i < span * B; i += V) *(VEC*)(piece + i) = (VEC)(0.0f);
}

// Where vector o of a slab and pixel p of a tile lie in y, from the first of both.
INLINE ulong place_at(int vector, int p, ulong y_plane, int y_column_step) {
    return (ulong)(vector * V / B) * y_plane + vector * V % B + (ulong)(p * y_column_step * B);
}

// Prefetches the P pixels of a tile's row of x.
INLINE void prefetch_pixels(global const float* at) {
#pragma unroll
    for (int p = 0; p < P; ++p) prefetch_line(at + p * S * B);
}
// Pixels that the next tile is the first to read.
INLINE void prefetch_next_tile(global const float* at) {
#pragma unroll
    for (int p = 0; p < P; ++p) prefetch_line_far(at + p * S * B);
    if (S == 1) return;
#pragma unroll
    for (int p = 0; p < P; ++p) prefetch_line_far(at + B + p * S * B);
}

// The biases of a slab, zero from vector `vectors` on.
INLINE void read_bias(global const float* bias, int vector0, int vectors, int count, VEC* to) {
#pragma unroll
    for (int o = 0; o < O; ++o) to[o] = vector0 + o < vectors ? read_lanes(bias, vector0 + o, count) : (VEC)(0.0f);
}

// One kernel position: multiplies `lanes` lanes of the input block from xp by lanes*O*V weights at wp. It is a macro since xp may be
// a global or a private pointer.
#define POSITION \
    for (int line = 0; line < ahead_lines && ahead < ahead_end; line++) { \
        prefetch_line_far(ahead); \
        ahead += LINE_FLOATS; \
    } \
    for (int lane = 0; lane < lanes; lane += LANE_STEP) { \
        _Pragma("unroll") for (int l = 0; l < LANE_STEP; ++l) { \
            VEC w_l[O]; \
            read_vectors(wp + l * O * V, V, w_l); \
            _Pragma("unroll") for (int p = 0; p < P; ++p) \
                add_products(acc + p, P, w_l, xp[p * S * B + l]); \
        } \
        xp += LANE_STEP; \
        wp += LANE_STEP * O * V; \
    }

// Adds the sums of the chunks before, and stores the sum or, after the last chunk, the output. The second half of a last block of
// which the slab has only the first becomes zero. It is a macro since the epilogue reads parameters of the kernel.
#define SUM_AT(o, p) (tile_at + place_at(vector0 + o, p, y_plane, y_column_step))
#define END_CHUNK \
    if (c0 != first_block) { \
        FOR_SUMS(p, P) if (p >= skip && vector0 + o < out_vectors) acc[o * P + p] += vec_at(y + SUM_AT(o, p)); \
    } \
    if (c1 < end_block) { \
        FOR_SUMS(p, P) if (p >= skip && vector0 + o < out_vectors) AT(y + SUM_AT(o, p)) = acc[o * P + p]; \
        continue; \
    } \
    FOR_SUMS(p, P) if (p >= skip && vector0 + o < out_vectors) { \
        const ulong at = SUM_AT(o, p); \
        VEC v = acc[o * P + p]; \
        EPILOGUE(v, at); \
        if ((vector0 + o + 1) * V > group_out) v = keep_lanes(v, group_out - (vector0 + o) * V); \
        AT(y + at) = v; \
    } \
    for (int p = pads ? skip : P; p < P; p++) AT(y + SUM_AT(out_vectors - vector0, p)) = (VEC)(0.0f);

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv(global const float* x, ulong x_offset, global const float* w, ulong w_offset,
          global const float* bias, ulong bias_offset, global float* y, ulong y_offset,
          int rows, int tile_columns, int tiles_per_item, int items, int slabs, int slab_inner,
          int group_slabs, int group_out, int width_in, int width_out, int slab_lanes, int in_blocks, int chunk,
          int ahead_lines, int x_blocks, int x_h, int x_w,
          int out_vectors, int y_blocks, int y_h, int y_w, int y_row0, int y_column0, int y_row_step, int y_column_step, int has_bias,
          int out_h, int out_w, int kernel_h, int kernel_w, int stride_h, int stride_w, int pad_h, int pad_w,
          int dilate_h, int dilate_w, int span EPILOGUE_PARAMETERS)
{
    const int id = get_global_id(0);
    const int slab = slab_inner ? id % slabs : id / items;  // group of O output blocks, over all groups
    const int item = slab_inner ? id / slabs : id % items;
    const int group = slab / group_slabs;
    const int vector0 = slab % group_slabs * O;
#if ACROSS
    const int first = reach_first(vector0 * V, width_out, width_in, LANE_STEP);
    const int end = reach_end(min((vector0 + O) * V, group_out) - 1, width_out, width_in, LANE_STEP);
    const int first_block = first / B, end_block = (end + B - 1) / B;
#else
    const int first_block = 0, end_block = in_blocks;
#endif
    const int tile0 = item * tiles_per_item;
    const int tile1 = min(tile0 + tiles_per_item, rows * tile_columns);
    const ulong y_plane = (ulong)y_h * y_w * B;
    x += x_offset;
    w += w_offset + (ulong)slab * slab_lanes * kernel_h * kernel_w * (O * V);
    bias += bias_offset;
    y += y_offset;
    const int pads = V < B && group_out % B > 0 && vector0 + O == out_vectors;
    VEC start[O];
    read_bias(bias + group * group_out, vector0, has_bias ? out_vectors : 0, group_out, start);
    for (int c0 = first_block; c0 < end_block; c0 += chunk) {
        const int c1 = min(c0 + chunk, end_block);
        global const float* ahead = w + (ulong)LANES_BEFORE(c1) * kernel_h * kernel_w * (O * V);
        global const float* const ahead_end = ahead + (ulong)chunk * kernel_h * kernel_w * (B * O * V);
        for (int tile = tile0; tile < tile1; tile++) {
            const int row = tile / tile_columns;
            const int n = row / out_h, oh = row % out_h;
            const int wanted = tile % tile_columns * P;
            const int column = min(wanted, out_w - P);
            const int skip = wanted - column;
            const ulong tile_at = (((ulong)n * y_blocks + (ulong)group * out_vectors) * y_h +
                                   y_row0 + oh * y_row_step) * y_w * B + (ulong)(y_column0 + column * y_column_step) * B;
            VEC acc[O * P];
            if (c0 == first_block) {
                FOR_SUMS(p, P) acc[o * P + p] = start[o];
            } else {
                FOR_SUMS(p, P) acc[o * P + p] = (VEC)(0.0f);
            }
            global const float* image = x + ((ulong)n * x_blocks + (ulong)group * in_blocks) * x_h * x_w * B;
#if DIRECT
            global const float* from = image + ((ulong)c0 * x_h * x_w + (ulong)oh * x_w + column) * B;
            global const float* wp = w + (ulong)LANES_BEFORE(c0) * (O * V);
            for (int c = c0; c < c1; c++) {
                const int lanes = LANE_COUNT(c);
                global const float* xp = from + LANE0(c);
                from += (ulong)x_h * x_w * B;
                prefetch_pixels(from);
                POSITION
            }
#else
            float piece[XS * B] __attribute__((aligned(4 * V)));
            const int at_w = column * stride_w - pad_w;
            // How far the next tile's pixels are from this tile's, unless it lies in the next image.
            const int next = tile + 1, next_column = min(next % tile_columns * P, out_w - P);
            const long ahead_x = ((long)(next / tile_columns - row) * stride_h * x_w + (next_column - column) * stride_w) * B;
            const int before = clamp(-at_w, 0, span), until = clamp(x_w - at_w, before, span);
            for (int c = c0; c < c1; c++) {
                const int lanes = LANE_COUNT(c);
                for (int kh = 0; kh < kernel_h; kh++) {
                    const int h = oh * stride_h - pad_h + kh * dilate_h;
                    if (h < 0 || h >= x_h) continue;
                    global const float* from = image + (((long)c * x_h + h) * x_w + at_w) * B;
                    global const float* wp = w +
                        ((ulong)LANES_BEFORE(c) * kernel_h + kh * lanes) * kernel_w * (O * V);
                    if (kernel_h == 1) prefetch_pixels(from + (ulong)x_h * x_w * B);
                    else if (kh + stride_h >= kernel_h) prefetch_next_tile(from + ahead_x);
                    if (before == 0 && until == span) {
                        for (int kw = 0; kw < kernel_w; kw++) {
                            global const float* xp = from + kw * dilate_w * B + LANE0(c);
                            POSITION
                        }
                    } else {
                        copy_piece(from, before, until, span, piece);
                        for (int kw = 0; kw < kernel_w; kw++) {
                            const float* xp = piece + kw * dilate_w * B + LANE0(c);
                            POSITION
                        }
                    }
                }
            }
#endif
            END_CHUNK
        }
    }
}
