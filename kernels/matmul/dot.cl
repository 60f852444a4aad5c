// SPDX-License-Identifier: MIT
// matmul.dot: C = A B^T on CPUs, where the rows of A and of B are contiguous along k. InnerProduct is such a product:
// B is its weight, which is read in place, once for every MR rows of A.
//
//                       NV columns of C
//                      +----+----+
//   MR rows of C       | W  | W  |   each element of C is a vector of W partial sums, which stays in registers over
//                      | W  | W  |   all of k. At the end the W lanes are added up.
//                      +----+----+
//
// Define                      meaning                                                     example
// W                           lanes of a vector                                           8
// MR, NV                      rows and columns of a block                                 6, 4
// HAS_RESIDUAL                whether the epilogue adds a tensor                          0
// EPILOGUE(v, r)              statements that apply the epilogue to v; r: the residual    v = v + r;
//
// The last blocks of rows may have fewer (matmul/vector_tile.clh), and a last column alone is a block of MR rows.
//
// Work-item: MR rows of several blocks that lie side by side. Rows and columns beyond the edge of C repeat the last one and
// are not stored. Work-group: one work-item. Local memory: none.

#include "matmul/batch.clh"
#include "matmul/vector_tile.clh"

#if W == 16
inline float across(vec x) {
    const float8 h = x.lo + x.hi;
    const float4 q = h.lo + h.hi;
    const float2 p = q.lo + q.hi;
    return p.x + p.y;
}
#elif W == 8
inline float across(vec x) {
    const float4 q = x.lo + x.hi;
    const float2 p = q.lo + q.hi;
    return p.x + p.y;
}
#else
inline float across(vec x) {
    const float2 p = x.lo + x.hi;
    return p.x + p.y;
}
#endif

inline void put(float v, int row, int column, int n, int has_bias, global float* c, global const float* bias,
                global const float* residual) {
    if (has_bias) v += bias[column];
    const long at = (long)row * n + column;
#if HAS_RESIDUAL
    const float r = residual[at];
#endif
    EPILOGUE(v, r)
    c[at] = v;
}

#define FOR_COLUMNS(width) _Pragma("unroll") for (int v = 0; v < NV; ++v) if (v < width)

// Sums of a block of `height` rows and `width` columns, of which `rows` and `columns` exist: vectors of sums to `lanes`, sums of
// the last steps, which fill no vector, to `ends`. Rows and columns are k apart.
INLINE void sum_block(const int height, const int width, int rows, int columns, int k, global const float* a,
                      global const float* b, float* lanes, float* ends) {
    global const float *pa[MR], *pb[NV];
    vec acc[MR][NV];
    float tails[MR][NV];
    FOR_ROWS(height) {
        pa[r] = a + (long)min(r, rows - 1) * k;
        FOR_COLUMNS(width) acc[r][v] = (vec)(0.0f), tails[r][v] = 0.0f;
    }
    FOR_COLUMNS(width) pb[v] = b + (long)min(v, columns - 1) * k;
    int p = 0;
    for (; p + W <= k; p += W) {
        vec b_now[NV];
        FOR_COLUMNS(width) b_now[v] = VLOAD(0, pb[v] + p);
        FOR_ROWS(height) {
            const vec a_now = VLOAD(0, pa[r] + p);
            FOR_COLUMNS(width) acc[r][v] = add_product(acc[r][v], a_now, b_now[v]);
        }
    }
    for (; p < k; ++p) {
        FOR_ROWS(height)
            FOR_COLUMNS(width) tails[r][v] += pa[r][p] * pb[v][p];
    }
    FOR_ROWS(height)
        FOR_COLUMNS(width) {
            VSTORE(acc[r][v], r * NV + v, lanes);
            ends[r * NV + v] = tails[r][v];
        }
}

kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_dot(
    global const float* a, ulong a_offset, global const float* b, ulong b_offset, global const float* bias,
    ulong bias_offset, global const float* residual, ulong residual_offset, global float* c, ulong c_offset, int m,
    int n, int k, int columns, int batch_1, int batch_2, int batch_3,
    int batch_4, int batch_5, long a_0, long a_1, long a_2, long a_3, long a_4, long a_5,
    long b_0, long b_1, long b_2, long b_3, long b_4, long b_5, float alpha, int has_bias) {
    const int top = get_global_id(0) * MR, bottom = min(top + MR, m);
    const int first = get_global_id(1) * columns, last = min(n, first + columns);
    const long batch = get_global_id(2);
    a += a_offset + A_BATCH(batch);
    b += b_offset + B_BATCH(batch);
    c += c_offset + (ulong)batch * m * n;
    bias += bias_offset;
    residual += residual_offset + (ulong)batch * m * n;
    for (int column = first; column < last; column += NV) {
        const int block_columns = min(NV, last - column);
        for (int row = top; row < bottom;) {
            const int height = block_columns == 1 ? MR : tile_height(bottom - row), rows = min(height, bottom - row);
            // By way of memory, so that sums across, bias and epilogue are compiled once and not MR * NV times.
            float lanes[MR * NV * W], ends[MR * NV];
            global const float *from_a = a + (long)row * k, *from_b = b + (long)column * k;
            if (block_columns == 1) sum_block(MR, 1, rows, 1, k, from_a, from_b, lanes, ends);
            else CALL_BY_HEIGHT(height, sum_block, NV, rows, block_columns, k, from_a, from_b, lanes, ends);
            for (int r = 0; r < rows; ++r)
                for (int v = 0; v < block_columns; ++v)
                    put(alpha * (across(VLOAD(r * NV + v, lanes)) + ends[r * NV + v]), row + r, column + v, n, has_bias, c,
                        bias, residual);
            row += height;
        }
    }
}
