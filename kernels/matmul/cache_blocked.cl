// SPDX-License-Identifier: MIT
// matmul.cache_blocked: large matrix products on CPUs, whose operands are packed block by block into a core's caches.
//
//                        B: one panel of NR columns, packed to local memory when its turn comes
//                      +----+----+----+
//      k_block rows    |    |####|    |   it is used by all tiles of the block of A
//                      +----+----+----+
//      k_block         panel 0  1  ...
//     +-------+        +----+----+----+
//     | tile 0|        |    |    |    |   C: a tile of MR rows and NR columns is in registers while k_block steps
//     | tile 1|        |    |####|    |   are summed
//     | ...   |        |    |    |    |
//     +-------+        +----+----+----+
//     A: a block of row_tiles tiles, packed to local memory for all panels of the work-item. The last tiles may have fewer
//     rows (matmul/vector_tile.clh); a tile of the packed block has a_width rows, which is MR unless all of A has fewer.
//
// (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008.) A work-item computes row_tiles tiles by
// column_panels panels of C, for k_part steps of k. Where it needs several blocks of k, sums wait in `sums` in the meantime.
// Where k is divided into `parts` work-items, these leave their sums there, and matmul_cache_blocked_finish adds them, in order.
//
// Define                      meaning                                                     example
// W                           lanes of a vector                                           16
// NV, MR                      vectors and rows of a tile                                  2, 12
// K_BLOCK                     the most steps of a block of k                              384
// A_FLOATS                    local memory for a block of A                               131072
// HAS_RESIDUAL                whether the epilogue adds a tensor                          0
// EPILOGUE(v, r)              statements that apply the epilogue to v; r: the residual    v = v + r;
//
// Work-group: one work-item. Local memory: K_BLOCK * NR + A_FLOATS floats.

#include "matmul/batch.clh"
#include "matmul/vector_tile.clh"

typedef vec vec_any __attribute__((aligned(4)));  // vstore would take smaller pieces

// Bias, epilogue and store of W elements of a row.
INLINE void put(vec v, float alpha, int has_bias, global float* c, global const float* bias, global const float* residual) {
    v *= alpha;
    if (has_bias) v += VLOAD(0, bias);
#if HAS_RESIDUAL
    const vec r = VLOAD(0, residual);
#endif
    EPILOGUE(v, r)
    *(global vec_any*)c = v;
}

// Of the first `columns` of NR elements.
INLINE void put_some(const float* sums, float alpha, int has_bias, global float* c, global const float* bias,
                     global const float* residual, int columns) {
    int i = 0;
    for (; i + W <= columns; i += W) put(VLOAD(0, sums + i), alpha, has_bias, c + i, bias + i, residual + i);
    for (; i < columns; ++i) {
        float s = sums[i] * alpha;
        if (has_bias) s += bias[i];
#if HAS_RESIDUAL
        const float r = residual[i];
#endif
        EPILOGUE(s, r)
        c[i] = s;
    }
}

#define PANEL local
#include "matmul/pack.clh"

INLINE void read_panel(local const float* from, vec* to) {
#pragma unroll
    for (int v = 0; v < NV; ++v) to[v] = *(local const vec_any*)(from + v * W);
}

// Packs lines whose steps are neighbours (`along`), or that are neighbours themselves.
INLINE void pack_lines(int along, global const float* from, long line_step, long k_step, int lines, int steps, int width,
                       local float* to) {
    if (along) pack_along(from, line_step, 1, lines, steps, width, to);
    else pack_across(from, k_step, lines, steps, width, to);
}

// What is prefetched in each step of k: a line of an operand's next block, `step` elements after the one before.
struct prefetched {
    global const float* line;
    long step;
};

// Adds `steps` steps of k to the sums of `height` rows, which are in `before` unless this is the start, and stores them to
// `lanes`. The steps are in `shares` parts, each with lines of the next panel of B to prefetch, share_distance apart.
INLINE void add_steps(const int height, int start, int steps, local const float* pa, int a_width, local const float* pb,
                      global const float* before, struct prefetched next_a, struct prefetched next_b, int shares, long share_distance,
                      int most_shares, float* lanes) {
    vec acc[MR][NV];
    FOR_SUMS(height) acc[r][v] = start ? (vec)(0.0f) : VLOAD(r * NV + v, before);
    const int share_steps = (steps + shares - 1) / shares;
    for (int share = 0; share < shares; ++share) {
        const int from = share * share_steps, to = min(from + share_steps, steps);
        global const float* line = next_b.line + min(share, most_shares) * share_distance;
        for (int p = from; p < to; ++p) {
            vec b_now[NV];
            read_panel(pb, b_now);
            FOR_ROWS(height) add_products(acc[r], (vec)(pa[r]), b_now);
            pa += a_width;
            pb += NR;
            prefetch_line_far(next_a.line);
            next_a.line += next_a.step;
            prefetch_line_far(line);
            line += next_b.step;
        }
    }
    FOR_SUMS(height) VSTORE(acc[r][v], r * NV + v, lanes);
}

// Of `rows` rows in `lanes` to C, which has rows of n, of which `columns` are left.
INLINE void put_rows(const float* lanes, int rows, float alpha, int has_bias, global float* c, global const float* bias,
                     global const float* residual, int n, int columns) {
    for (int r = 0; r < rows; ++r, lanes += NR, c += n, residual += n) {
        if (columns >= NR) {
#pragma unroll
            for (int v = 0; v < NR; v += W)
                put(VLOAD(0, lanes + v), alpha, has_bias, c + v, bias + v, residual + v);
        } else {
            put_some(lanes, alpha, has_bias, c, bias, residual, columns);
        }
    }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_cache_blocked(
    global const float* a, ulong a_offset, global const float* b, ulong b_offset, global const float* bias,
    ulong bias_offset, global const float* residual, ulong residual_offset, global float* c, ulong c_offset,
    global float* sums, ulong sums_offset, int m, int n, int k, int k_block, int k_part, int parts, int row_tiles, int column_panels, int a_width,
    long a_row, long a_k, long b_k, long b_column, int batch_1, int batch_2, int batch_3,
    int batch_4, int batch_5, long a_0, long a_1, long a_2, long a_3, long a_4, long a_5,
    long b_0, long b_1, long b_2, long b_3, long b_4, long b_5, float alpha, int has_bias) {
    local float a_block[A_FLOATS];
    local float b_panel[K_BLOCK * NR];
    const int a_along = a_k == 1, b_along = b_k == 1;  // whether neighbouring steps of k are neighbours in memory
    const int panels = (n + NR - 1) / NR, tiles = (m + MR - 1) / MR;
    const int first_panel = get_global_id(0) * column_panels, last_panel = min(first_panel + column_panels, panels);
    const int first_tile = get_global_id(1) * row_tiles, last_tile = min(first_tile + row_tiles, tiles);
    const int row_end = min(last_tile * MR, m);
    const long batch = get_global_id(2) / parts;
    const int begin = (int)(get_global_id(2) % parts) * k_part, end = min(begin + k_part, k);
    a += a_offset + A_BATCH(batch);
    b += b_offset + B_BATCH(batch);
    c += c_offset + batch * m * n;
    bias += bias_offset;
    residual += residual_offset + batch * m * n;
    sums += sums_offset + (long)get_global_id(2) * panels * tiles * (MR * NR);
    for (int k0 = begin; k0 < end; k0 += k_block) {
        const int steps = min(k_block, end - k0), start = k0 == begin, finish = parts == 1 && k0 + steps >= end;
        // While a tile is multiplied, it prefetches this many lines of k of the next panel, one after the other.
        const int shares = b_along ? (NR + last_tile - first_tile - 1) / (last_tile - first_tile) : 1;
        for (int tile = first_tile; tile < last_tile; ++tile)
            pack_lines(a_along, a + tile * MR * a_row + k0 * a_k, a_row, a_k, min(MR, m - tile * MR), steps, a_width,
                       a_block + (tile - first_tile) * a_width * steps);
        for (int panel = first_panel; panel < last_panel; ++panel) {
            const int column = panel * NR;
            global const float* b_from = b + column * b_column + k0 * b_k;
            pack_lines(b_along, b_from, b_column, b_k, min(NR, n - column), steps, NR, b_panel);
            global const float* b_next = panel + 1 == last_panel ? b + first_panel * NR * b_column + (k0 + steps) * b_k
                                                                 : b_from + NR * b_column;
            for (int row = first_tile * MR, height; row < row_end; row += height) {
                height = tile_height(row_end - row);
                const int tile = row / MR, turn = tile - first_tile, rows = min(height, row_end - row);
                global float* tile_sums = sums + ((long)panel * tiles + tile) * (MR * NR) + row % MR * NR;
                if (finish) fetch_ends(c + column, residual + column, row, row + rows, n);
                // What is packed next is prefetched, a line of each operand a step. `b_next` is where the panel comes from.
                struct prefetched next_a = {b, 0}, next_b;
                if (!a_along && panel == first_panel && k0 + steps < end) {
                    next_a.line = a + row * a_row + (k0 + steps) * a_k;
                    next_a.step = a_k;
                }
                const int first_share = b_along ? min(turn * shares, NR - 1) : 0;
                if (b_along) {
                    next_b.line = b_next + first_share * b_column;
                    next_b.step = shares;
                } else {
                    next_b.line = b_next + min(turn, NR / LINE_FLOATS) * LINE_FLOATS;
                    next_b.step = turn < NR / LINE_FLOATS ? b_k : 0;
                }
                float lanes[MR * NR];
                CALL_BY_HEIGHT(height, add_steps, start, steps, a_block + turn * a_width * steps + row % MR, a_width, b_panel,
                               tile_sums, next_a, next_b, shares, b_column, NR - 1 - first_share, lanes);
                const long at = (long)row * n + column;
                if (finish)
                    put_rows(lanes, rows, alpha, has_bias, c + at, bias + column, residual + at, n, n - column);
                else
                    for (int i = 0; i < rows * NR; i += W) *(global vec_any*)(tile_sums + i) = VLOAD(0, lanes + i);
            }
        }
    }
}

// Adds the sums of a tile that `parts` work-items left. Work-item: a tile of C.
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_cache_blocked_finish(
    global const float* sums, ulong sums_offset, global const float* bias, ulong bias_offset, global const float* residual,
    ulong residual_offset, global float* c, ulong c_offset, int m, int n, int parts, float alpha, int has_bias) {
    const int panels = (n + NR - 1) / NR, tiles = (m + MR - 1) / MR;
    const int column = get_global_id(0) * NR, row = get_global_id(1) * MR;
    const long batch = get_global_id(2);
    bias += bias_offset;
    residual += residual_offset + batch * m * n;
    c += c_offset + batch * m * n;
    const long part = (long)panels * tiles * (MR * NR);
    sums += sums_offset + batch * parts * part + ((long)get_global_id(0) * tiles + get_global_id(1)) * (MR * NR);
    for (int r = 0; r < min(MR, m - row); ++r) {
        float total[NR];
        for (int v = 0; v < NR; v += W) {
            vec sum = VLOAD(0, sums + r * NR + v);
            for (int i = 1; i < parts; ++i) sum += VLOAD(0, sums + i * part + r * NR + v);
            VSTORE(sum, 0, total + v);
        }
        const long at = (long)(row + r) * n + column;
        put_some(total, alpha, has_bias, c + at, bias + column, residual + at, min(NR, n - column));
    }
}
