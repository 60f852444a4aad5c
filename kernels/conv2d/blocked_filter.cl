// SPDX-License-Identifier: MIT
// conv2d_backward_filter.blocked: the gradient of convolution weights on CPUs with blocked x and dy [N, C/B, H, W, B].
//
//            I input channels
//          +---+- -+---+
// O vectors|   |   |   |     acc[o][i] += dy[o][pixel] * splat(x[i][pixel shifted by the tap])
// of V     +---+- -+---+        over the pixels of a few rows
// channels |   |   |   |     O * I accumulators, each in a register
//          +---+- -+---+
//
// Define   meaning                                                         example
// B        channels of a block of x and dy                                 16
// V        lanes of a vector: B, or B/2 for groups of half blocks          16
// O, I     vectors of output channels and input channels of the tile;
//          I divides V                                                     2, 8
// ACROSS   1 if the groups of a grouped convolution do not fill whole vectors. Then V is B, O is 1 and I is V     0
//
// Work-item: `tile_out` x `tile_in` vectors of channels of one group and every `splits`-th part of the row chunks, where a chunk
// is `chunk_rows` rows of one image. (With `images_are_rows` the images of a batch are the rows of a single one.) While it
// multiplies, it prefetches the next chunk to the L2 cache. The sums over a few rows are added to the work-item's part of
// `sums`, so that no single sum is long:
//   [split, group, output vector, input vector, kernel row, kernel column, V in lanes, V out lanes]
// Then filter_sum adds the splits and writes plain weights.
//
// With ACROSS a block of output channels may have channels of several groups. A work-item has one such block and the input
// blocks of these groups, for which `in_vectors` is the room in `sums`. filter_sum_across leaves out the sums of channels of
// different groups.
// Work-group: one work-item. Local memory: none.
#include "common/inline.clh"
#include "common/vectors.clh"
#include "conv2d/blocked_sums.clh"
#if ACROSS
#include "conv2d/blocked_reach.clh"
#endif

// Where the channels of a vector begin in an image.
INLINE ulong place(int vector, ulong plane) { return vector * V / B * plane + vector * V % B; }

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void filter(global const float* x, ulong x_offset, global const float* dy, ulong dy_offset,
            global float* sums, ulong sums_offset, int splits, int groups, int tile_out, int tile_in,
            int out_tiles, int in_tiles, int out_vectors, int in_vectors, int x_blocks, int dy_blocks, int out,
            int width_in, int width_out, int batch, int chunks, int chunk_rows, int x_h,
            int x_w, int out_h, int out_w, int kernel_h, int kernel_w, int stride_h, int stride_w, int pad_h,
            int pad_w, int dilate_h, int dilate_w, int images_are_rows)
{
    const int id = get_global_id(0);
    const int tiles = groups * out_tiles * in_tiles;
    const int split = id / tiles, group = id % tiles / (out_tiles * in_tiles);
    const int b0 = id / in_tiles % out_tiles * tile_out, b1 = min(b0 + tile_out, out_vectors);
#if ACROSS
    const int c0 = reach_first(b0 * V, width_out, width_in, V) / V;
    const int c1 = reach_end(min(b1 * V, out) - 1, width_out, width_in, V) / V;
    const int sums_vector = c0;  // the input vector that the first sums are of
#else
    const int c0 = id % in_tiles * tile_in, c1 = min(c0 + tile_in, in_vectors);
    const int sums_vector = 0;
#endif
    const int x_first = group * in_vectors, dy_first = group * out_vectors;
    const int taps = kernel_h * kernel_w;
    const ulong x_plane = (ulong)(images_are_rows ? 1 : x_h) * x_w * B;
    const ulong dy_plane = (ulong)(images_are_rows ? 1 : out_h) * out_w * B;
    const long x_row = images_are_rows ? (long)x_blocks * x_w * B : (long)x_w * B;
    const ulong dy_row = images_are_rows ? (ulong)dy_blocks * out_w * B : (ulong)out_w * B;
    const ulong out_step = (ulong)in_vectors * taps * (V * V);
    x += x_offset;
    dy += dy_offset;
    sums += sums_offset + ((ulong)split * groups + group) * out_vectors * out_step;
    for (int b = b0; b < b1; b++) {
        global float* to = sums + b * out_step + (ulong)(c0 - sums_vector) * taps * (V * V);
        for (int k = 0; k < (c1 - c0) * taps * V; k++) AT(to + (ulong)k * V) = (VEC)(0.0f);
    }
    const int all = batch * chunks;
    const int first = (int)((long)all * split / splits), last = (int)((long)all * (split + 1) / splits);
    for (int part = first; part < last; part++) {
        const int n = part / chunks, r0 = part % chunks * chunk_rows, r1 = min(r0 + chunk_rows, out_h);
        global const float* x_image = x + (ulong)n * x_blocks * x_plane;
        global const float* dy_image = dy + (ulong)n * dy_blocks * dy_plane;
        // Where the next chunk begins.
        const int next = min(part + 1, last - 1), next_n = next / chunks, next_row = next % chunks * chunk_rows;
        global const float* x_next = x + next_n * x_blocks * x_plane + next_row * stride_h * x_row;
        global const float* dy_next = dy + next_n * dy_blocks * dy_plane + next_row * dy_row;
        // Vectors of dy are in the outer loop, because they are then read repeatedly from the L1 cache.
        for (int b = b0; b < b1; b += O) {
            ulong dy_at[O];
#pragma unroll
            for (int o = 0; o < O; ++o) dy_at[o] = place(dy_first + min(b + o, b1 - 1), dy_plane);
            for (int c = c0; c < c1; c++) {
                const ulong x_at = place(x_first + c, x_plane);
                for (int tap = 0; tap < taps; tap++) {
                    // Rows and columns of dy for which x at this tap is inside the image.
                    const int h = tap / kernel_w * dilate_h - pad_h, w = tap % kernel_w * dilate_w - pad_w;
                    const int row0 = max(r0, h < 0 ? (-h + stride_h - 1) / stride_h : 0);
                    const int row1 = h >= x_h ? row0 : min(r1, (x_h - 1 - h) / stride_h + 1);
                    const int col0 = w < 0 ? (-w + stride_w - 1) / stride_w : 0;
                    const int col1 = w >= x_w ? col0 : min(out_w, (x_w - 1 - w) / stride_w + 1);
                    if (row0 >= row1 || col0 >= col1) continue;
                    for (int lane = 0; lane < V; lane += I) {
                        // A pass over the pixels prefetches a line a pixel: the first ones the next x, and the first ones
                        // of each b the next dy. Later passes fetch a line that is there.
                        const int pass = tap * (V / I) + lane / I, dy_pass = (c - c0) * taps * (V / I) + pass;
                        const int fetch_x = b == b0 && pass < stride_h * stride_w, fetch_dy = dy_pass < O;
                        global const float* const x_ahead = x_next + x_at + pass / stride_w * x_row + pass % stride_w * out_w * B;
                        global const float* const dy_ahead =
                            dy_next + place(dy_first + min(b + dy_pass, b1 - 1), dy_plane);
                        const int x_step = fetch_x ? B : 0, dy_step = fetch_dy ? B : 0;
                        VEC acc[O * I];
                        FOR_SUMS(i, I) acc[o * I + i] = (VEC)(0.0f);
                        for (int row = row0; row < row1; row++) {
                            global const float* xp = x_image + x_at +
                                (row * stride_h + h) * x_row + (long)(col0 * stride_w + w) * B + lane;
                            global const float* dp = dy_image + row * dy_row + (ulong)col0 * B;
                            global const float* ahead_x = fetch_x ? x_ahead + (row - row0) * stride_h * x_row : x_next;
                            global const float* ahead_dy = fetch_dy ? dy_ahead + (row - row0) * dy_row : dy_next;
                            global const float* const end = dp + (col1 - col0) * B;
                            for (; dp < end; dp += B, xp += stride_w * B) {
                                VEC dy_now[O];
#pragma unroll
                                for (int o = 0; o < O; ++o) dy_now[o] = vec_at(dp + dy_at[o]);
#pragma unroll
                                for (int i = 0; i < I; ++i) add_products(acc + i, I, dy_now, xp[i]);
                                prefetch_line_far(ahead_x);
                                prefetch_line_far(ahead_dy);
                                ahead_x += x_step;
                                ahead_dy += dy_step;
                            }
                        }
                        global float* to = sums + b * out_step + ((ulong)((c - sums_vector) * taps + tap) * V + lane) * V;
                        FOR_SUMS(i, I) if (b + o < b1) AT(to + o * out_step + i * V) += acc[o * I + i];
                    }
                }
            }
        }
    }
}

// dw[group][out][in][tap] = the sum over splits. Work-item: one vector of output and one of input channels.
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void filter_sum(global float* sums, ulong sums_offset, global float* dw, ulong dw_offset, int splits,
                int groups, int out_vectors, int in_vectors, int group_out, int group_in, int taps)
{
    const int id = get_global_id(0);
    const int c = id % in_vectors, b = id / in_vectors % out_vectors, group = id / in_vectors / out_vectors;
    const ulong split_step = (ulong)groups * out_vectors * in_vectors * taps * (V * V);
    sums += sums_offset + (ulong)id * taps * (V * V);
    dw += dw_offset + (((ulong)group * group_out + b * V) * group_in + c * V) * taps;
    const int outs = min(V, group_out - b * V), ins = min(V, group_in - c * V);
    for (int k = 0; k < taps * V * V; k += V) {
        VEC total = vec_at(sums + k);
        for (int s = 1; s < splits; s++) total += vec_at(sums + k + s * split_step);
        AT(sums + k) = total;
    }
    // Rows of dw may be a multiple of 4 KiB apart, and a cache has room for few lines at such distances: one row at a time.
    for (int o = 0; o < outs; o++, dw += (ulong)group_in * taps)
        for (int i = 0; i < ins; i++)
            for (int tap = 0; tap < taps; tap++) dw[i * taps + tap] = sums[(tap * V + i) * V + o];
}

#if ACROSS
// The same across groups. Work-item: one output block.
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void filter_sum_across(global const float* sums, ulong sums_offset, global float* dw, ulong dw_offset, int splits,
                       int out_vectors, int in_vectors, int out, int width_out, int width_in, int taps)
{
    const int b = get_global_id(0);
    const ulong split_step = (ulong)out_vectors * in_vectors * taps * (V * V);
    const int out0 = b * V, outs = min(V, out - out0);
    const int g0 = out0 / width_out, g1 = (out0 + outs - 1) / width_out;
    const int in0 = reach_first(out0, width_out, width_in, V);
    sums += sums_offset + (ulong)b * in_vectors * taps * (V * V);
    dw += dw_offset;
    for (int group = g0; group <= g1; group++) {
        const int o0 = max(group * width_out - out0, 0), o1 = min((group + 1) * width_out - out0, outs);
        for (int i = 0; i < width_in; i++) {
            const int lane = group * width_in + i - in0;
            for (int tap = 0; tap < taps; tap++) {
                global const float* from = sums + ((ulong)(lane / V * taps + tap) * V + lane % V) * V;
                VEC total = vec_at(from);
                for (int s = 1; s < splits; s++) total += vec_at(from + s * split_step);
                float lanes[V] __attribute__((aligned(4 * V)));
                *(VEC*)lanes = total;
                for (int o = o0; o < o1; o++) dw[((ulong)(out0 + o) * width_in + i) * taps + tap] = lanes[o];
            }
        }
    }
}
#endif
