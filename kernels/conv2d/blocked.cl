// SPDX-License-Identifier: MIT
// conv2d.blocked and conv2d_backward_data.blocked: direct convolution on CPUs of blocked activations [N, C/B, H, W, B].
//
//            P pixels of an image
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
// ACROSS   1 if the groups of a grouped convolution do not fill whole blocks     0
// LANE_STEP lanes of x for which products are unrolled; divides B            4
// and the epilogue (src/engine/epilogue.hpp). Weights: see blocked_pack.cl and, with ACROSS, blocked_pack_across.cl. Before the
// weights lies a vector of B zeros.
//
// Work-item: `tiles_per_item` consecutive tiles of one slab of O vectors. The pixels of an image are divided into tiles row by
// row, so a tile may end in another row than it begins in, and programs depend neither on sizes of images nor on kernels and
// strides. The last tile of an image may have fewer pixels than P. It is computed with HALF or QUARTER pixels if these suffice.
//
// A tile whose pixels are neighbours in x is read from there at constant distances. Others are read by an indirect convolution
// (Dukhan, "The Indirect Convolution Algorithm", 2019): x_at has the place of each pixel. If a kernel position of the tile is
// beyond the image, x_at is computed for each position, and pixels outside are the zeros that lie before the weights.
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
#include "conv2d/tile_sizes.clh"

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

// Rows and columns of `count` pixels from the one at `row` and `column` of an image with `width` columns. Those beyond are like
// the last.
INLINE void place_pixels(int row, int column, int count, int width, int16* rows, int16* columns) {
    *rows = (int16)(row);
    *columns = column + min((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), (int16)(count - 1));
    for (int end = width; end < column + count; end += width) {
        const int16 beyond = *columns >= width;  // -1 for true
        *rows -= beyond;
        *columns -= beyond & width;
    }
}

// Stores where a tile's pixels lie in x at a kernel position, in floats from its place in `plane`, the plane of a block. For those
// outside of the image that is where `zeros` are.
INLINE void place_tap(const long* origin, int16 rows, int16 columns, int h_shift, int w_shift, int x_h, int x_w,
                      global const float* plane, global const float* zeros, long* to) {
    const int16 h = rows + h_shift, w = columns + w_shift;
    const int16 inside = (h >= 0) & (h < x_h) & (w >= 0) & (w < x_w);
    const long to_zeros = ((long)zeros - (long)plane) / 4 - ((long)h_shift * x_w + w_shift) * B;
    *(long16*)to = select((long16)(to_zeros), *(const long16*)origin, convert_long16(inside));
}

// Where vector `vector` of a slab lies in y.
INLINE ulong place_of(int vector, ulong y_plane) {
    return (ulong)(vector * V / B) * y_plane + vector * V % B;
}

// Prefetches the pixels of a tile, of which the first is `from`, or those that the next tile is the first to read. Of a tile of
// several rows they are only near.
INLINE void prefetch_pixels(global const float* from, int stride_w) {
#pragma unroll
    for (int p = 0; p < P; ++p) prefetch_line(from + p * stride_w * B);
}
INLINE void prefetch_next_tile(global const float* from, int stride_w) {
#pragma unroll
    for (int p = 0; p < P; ++p) prefetch_line_far(from + p * stride_w * B);
    if (stride_w == 1) return;
#pragma unroll
    for (int p = 0; p < P; ++p) prefetch_line_far(from + B + p * stride_w * B);
}

// One kernel position of the first `pixels` pixels: multiplies `lanes` lanes of the input block at xp by lanes*O*V weights at wp.
// place(p) is where pixel p lies, in floats.
#define MULTIPLY(pixels, place) \
    { \
        global const float* x_now = xp; \
        global const float* w_now = wp; \
        for (int lane = 0; lane < lanes; lane += LANE_STEP) { \
            _Pragma("unroll") for (int l = 0; l < LANE_STEP; ++l) { \
                VEC w_l[O]; \
                read_vectors(w_now + l * O * V, V, w_l); \
                _Pragma("unroll") for (int p = 0; p < (pixels); ++p) add_products(acc + p, P, w_l, x_now[place(p) + l]); \
            } \
            x_now += LANE_STEP; \
            w_now += LANE_STEP * O * V; \
        } \
    }
#define NEIGHBOUR(p) ((p) * B)
#define LISTED(p) x_at[p]
#define MULTIPLY_NEIGHBOURS \
    global const float* const xp = corner + from + w_shift * B + LANE0(c); \
    MULTIPLY(P, NEIGHBOUR)
#define MULTIPLY_LISTED \
    global const float* const xp = image + from + w_shift * B + LANE0(c); \
    const long* const x_at = inside ? origin : bordered + tap % 2 * 16; \
    tap++; \
    if (!inside) { \
        const int row_ends = kw + 1 == kernel_w, block_ends = row_ends && kh + 1 == kh1; \
        const int next_kh = block_ends ? kh0 : kh + row_ends, next_kw = row_ends ? 0 : kw + 1; \
        place_tap(origin, rows, columns, next_kh * dilate_h, next_kw * dilate_w, x_h, x_w, \
                  image + (c + block_ends) * x_plane + LANE0(c + block_ends), zeros, bordered + tap % 2 * 16); \
    } \
    if (count > HALF) { \
        MULTIPLY(P, LISTED) \
    } else if (count > QUARTER) { \
        MULTIPLY(HALF, LISTED) \
    } else { \
        MULTIPLY(QUARTER, LISTED) \
    }
// Multiplies all kernel positions of a chunk that are not completely above or below the image.
#define FOR_TAPS(MULTIPLY_TAP) \
    for (int c = c0; c < c1; c++) { \
        const int lanes = LANE_COUNT(c); \
        global const float* wp = w + ((ulong)LANES_BEFORE(c) * kernel_h + kh0 * lanes) * kernel_w * (O * V); \
        for (int kh = kh0; kh < kh1; kh++) { \
            const long from = c * x_plane + (long)(kh * dilate_h) * x_w * B; \
            if (kernel_h == 1) prefetch_pixels(corner + from + x_plane, stride_w); \
            else if (kh + stride_h >= kernel_h) prefetch_next_tile(corner + from + ahead_x, stride_w); \
            for (int kw = 0; kw < kernel_w; kw++, wp += lanes * (O * V)) { \
                for (int line = 0; line < ahead_lines && ahead < ahead_end; line++, ahead += LINE_FLOATS) \
                    prefetch_line_far(ahead); \
                const int w_shift = kw * dilate_w; \
                MULTIPLY_TAP \
            } \
        } \
    }

// The biases of a slab, zero from vector `vectors` on.
INLINE void read_bias(global const float* bias, int vector0, int vectors, int count, VEC* to) {
#pragma unroll
    for (int o = 0; o < O; ++o) to[o] = vector0 + o < vectors ? read_lanes(bias, vector0 + o, count) : (VEC)(0.0f);
}

// Adds the sums of the chunks before, and stores the sum or, after the last chunk, the output. The second half of a last block of
// which the slab has only the first becomes zero. It is a macro since the epilogue reads parameters of the kernel.
#define END_CHUNK \
    VEC sums[O * P]; \
    FOR_SUMS(p, P) sums[o * P + p] = acc[o * P + p]; \
    for (int o = 0; o < min(O, out_vectors - vector0); o++) { \
        const int left = group_out - (vector0 + o) * V; \
        ulong at = tile_at + place_of(vector0 + o, y_plane); \
        for (int p = 0, row_end = out_w - column; p < count; row_end += out_w, at += y_jump) \
            for (; p < min(row_end, count); p++, at += y_step) { \
                VEC v = sums[o * P + p]; \
                if (c0 != first_block) v += vec_at(y + at); \
                if (c1 == end_block) { \
                    EPILOGUE(v, at); \
                    if (left < V) v = keep_lanes(v, left); \
                    if (pads && o + 1 == O) AT(y + at + V) = (VEC)(0.0f); \
                } \
                AT(y + at) = v; \
            } \
    }

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void conv(global const float* x, ulong x_offset, global const float* w, ulong w_offset,
          global const float* bias, ulong bias_offset, global float* y, ulong y_offset,
          int tiles, int image_tiles, int tiles_per_item, int items, int slabs, int slab_inner,
          int group_slabs, int group_out, int width_in, int width_out, int slab_lanes, int in_blocks, int chunk,
          int ahead_lines, int x_blocks, int x_h, int x_w,
          int out_vectors, int y_blocks, int y_h, int y_w, int y_row0, int y_column0, int y_row_step, int y_column_step, int has_bias,
          int out_h, int out_w, int kernel_h, int kernel_w, int stride_h, int stride_w, int pad_h, int pad_w,
          int dilate_h, int dilate_w EPILOGUE_PARAMETERS)
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
    const int tile1 = min(tile0 + tiles_per_item, tiles);
    const int pixels = out_h * out_w;
    const ulong x_plane = (ulong)x_h * x_w * B, y_plane = (ulong)y_h * y_w * B;
    // From one pixel of y to the next, and what is added from one row to the next.
    const ulong y_step = (ulong)(y_column_step * B), y_jump = (ulong)y_row_step * y_w * B - out_w * y_step;
    x += x_offset;
    global const float* const zeros = w + w_offset;
    w += w_offset + B + (ulong)slab * slab_lanes * kernel_h * kernel_w * (O * V);
    bias += bias_offset;
    y += y_offset;
    const int pads = V < B && group_out % B > 0 && vector0 + O == out_vectors;
    VEC start[O];
    read_bias(bias + group * group_out, vector0, has_bias ? out_vectors : 0, group_out, start);
    for (int c0 = first_block; c0 < end_block; c0 += chunk) {
        const int c1 = min(c0 + chunk, end_block);
        global const float* ahead = w + (ulong)LANES_BEFORE(c1) * kernel_h * kernel_w * (O * V);
        global const float* const ahead_end = ahead + (ulong)chunk * kernel_h * kernel_w * (B * O * V);
        int n = tile0 / image_tiles, pixel = tile0 % image_tiles * P;
        int row = pixel / out_w, column = pixel % out_w;
        for (int tile = tile0; tile < tile1; tile++) {
            const int count = min(P, pixels - pixel);
            // The first and last rows and columns of the tile.
            const int several = column + count > out_w;  // rows
            const int first_column = several ? 0 : column, last_column = several ? out_w - 1 : column + count - 1;
            const int last_row = several ? row + (column + count - 1) / out_w : row;
            const ulong tile_at = ((ulong)n * y_blocks + (ulong)group * out_vectors) * y_plane +
                                  ((ulong)(y_row0 + row * y_row_step) * y_w + y_column0 + column * y_column_step) * B;
            VEC acc[O * P];
            if (c0 == first_block) {
                FOR_SUMS(p, P) acc[o * P + p] = start[o];
            } else {
                FOR_SUMS(p, P) acc[o * P + p] = (VEC)(0.0f);
            }
            global const float* image = x + ((ulong)n * x_blocks + (ulong)group * in_blocks) * x_plane;
            // Where they read x at the first kernel position, and whether the tile is inside of the image at all positions.
            const int h0 = row * stride_h - pad_h, h1 = last_row * stride_h - pad_h;
            const int w0 = first_column * stride_w - pad_w, w1 = last_column * stride_w - pad_w;
            const int inside = h0 >= 0 && h1 + (kernel_h - 1) * dilate_h < x_h && w0 >= 0 && w1 + (kernel_w - 1) * dilate_w < x_w;
            // Kernel rows that are not completely above or below the image.
            const int kh0 = h1 < 0 ? (-h1 + dilate_h - 1) / dilate_h : 0;
            const int kh1 = h0 >= x_h ? kh0 : min(kernel_h, (x_h - 1 - h0) / dilate_h + 1);
            int tap = 0;
            const int neighbours = stride_w == 1 && count == P && !several;
            int16 rows = (int16)(0), columns = (int16)(0);
            long origin[16] __attribute__((aligned(128))), bordered[32] __attribute__((aligned(128)));
            if (!inside || !neighbours) {
                place_pixels(row, column, count, out_w, &rows, &columns);
                rows = rows * stride_h - pad_h;
                columns = columns * stride_w - pad_w;
                *(long16*)origin = convert_long16(rows * x_w + columns) * B;
                place_tap(origin, rows, columns, kh0 * dilate_h, 0, x_h, x_w, image + c0 * x_plane + LANE0(c0), zeros, bordered);
            }
            global const float* const corner = image + ((long)h0 * x_w + column * stride_w - pad_w) * B;
            // How far the next tile is, unless it is in the next image.
            const int next = column + P < out_w ? column + P : (column + P) % out_w;
            const int next_row = column + P < out_w ? row : row + (column + P) / out_w;
            const long ahead_x = ((long)(next_row - row) * stride_h * x_w + (next - column) * stride_w) * B;
            if (neighbours && inside) {
                FOR_TAPS(MULTIPLY_NEIGHBOURS)
            } else {
                FOR_TAPS(MULTIPLY_LISTED)
            }
            END_CHUNK
            pixel += P;
            row = next_row;
            column = next;
            if (pixel >= pixels) pixel = row = column = 0, n++;
        }
    }
}
