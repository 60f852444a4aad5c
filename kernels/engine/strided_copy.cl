// SPDX-License-Identifier: MIT
// Copies raw elements between arrays that are described by sizes and strides, in up to 8 dimensions. Dimension 7 is the
// innermost in y. Unused dimensions have size 1.
//
// Define   meaning                                                             example
// T        uchar, ushort, uint or ulong                                        uint
// RANK     dimensions in use: 1 to 8                                           4
// INDEX    uint or ulong, for numbers up to that of all elements               uint
// VECTOR   elements per step of copy_elements: 1 or 4                          4
// WIDE     1 on CPUs: a work-item loops over rows with vectors of 16           0
// TILE     side of a tile in copy_tiles                                        32
// MODE     padding: 0 constant, 1 reflect, 2 replicate, 3 circular             0
//
// Local memory: TILE * (TILE + 1) elements in copy_tiles if WIDE is 0, otherwise none.

#include "common/join.clh"

// Takes one coordinate from i and advances both positions by it.
#define STEP(d)                          \
    {                                    \
        INDEX c = i % (INDEX)s##d;       \
        i /= (INDEX)s##d;                \
        xi += (long)c * f##d;            \
        yi += (long)c * t##d;            \
    }

#if RANK > 2
#define STEP5 STEP(5)
#else
#define STEP5
#endif
#if RANK > 3
#define STEP4 STEP(4)
#else
#define STEP4
#endif
#if RANK > 4
#define STEP3 STEP(3)
#else
#define STEP3
#endif
#if RANK > 5
#define STEP2 STEP(2)
#else
#define STEP2
#endif
#if RANK > 6
#define STEP1 STEP(1)
#else
#define STEP1
#endif
#if RANK > 7
#define STEP0 STEP(0)
#else
#define STEP0
#endif
#define OUTER_STEPS STEP5 STEP4 STEP3 STEP2 STEP1 STEP0

// Any device. Work-item: VECTOR elements (s7, f7 and t7 then count vectors).
kernel void copy_elements(global const T* x, ulong x_offset, global T* y, ulong y_offset, ulong count,
                          long s0, long s1, long s2, long s3, long s4, long s5, long s6, long s7,
                          long f0, long f1, long f2, long f3, long f4, long f5, long f6, long f7,
                          long t0, long t1, long t2, long t3, long t4, long t5, long t6, long t7) {
    if (get_global_id(0) >= count) return;
    INDEX i = (INDEX)get_global_id(0);
    long xi = 0, yi = 0;
    STEP(7)
#if RANK > 1
    STEP(6)
#endif
    OUTER_STEPS
    x += x_offset;
    y += y_offset;
#if VECTOR == 4
    vstore4(vload4(0, x + xi), 0, y + yi);
#else
    y[yi] = x[xi];
#endif
}

// CPUs. Work-item (p, q): piece p (of `piece` elements) of each of `rows` rows of dimension 7, starting with row q *
// rows.
kernel void copy_rows(global const T* x, ulong x_offset, global T* y, ulong y_offset, ulong count,
                      long rows, long piece, long s0, long s1, long s2, long s3, long s4, long s5,
                      long s6, long s7, long f0, long f1, long f2, long f3, long f4, long f5, long f6,
                      long f7, long t0, long t1, long t2, long t3, long t4, long t5, long t6, long t7) {
    const long begin = (long)get_global_id(0) * piece;
    const long end = min(begin + piece, s7);
    const long first = (long)get_global_id(1) * rows;
    const long last = min(first + rows, (long)count);
    x += x_offset;
    y += y_offset;
    for (long row = first; row < last; ++row) {
        INDEX i = (INDEX)row;
        long xi = 0, yi = 0;
#if RANK > 1
        STEP(6)
#endif
        OUTER_STEPS
        global const T* a = x + xi;
        global T* b = y + yi;
        long k = begin;
        if (f7 == 1 && t7 == 1) {
            for (; k + 16 <= end; k += 16) vstore16(vload16(0, a + k), 0, b + k);
            for (; k < end; ++k) b[k] = a[k];
        } else {
            for (; k < end; ++k) b[k * t7] = a[k * f7];
        }
    }
}

// Transposition: x is contiguous along dimension 6 and y along dimension 7. A work-group copies a tile of TILE x TILE elements
// at one position (i0 .. i5):
//
//        dimension 7 (y contiguous)
//      +---------+
//    6 |  tile   |   work-groups: (tiles of 7, tiles of 6, product of the outer sizes)
//      +---------+
//
// Either may consist of two dimensions that follow each other in that array, so that short lines fill a tile: of dimension 6
// the inner one has q6 elements, which are t6 apart in y, and the outer one steps by g6 in y; likewise q7, f7 and g7 in x.
kernel void copy_tiles(global const T* x, ulong x_offset, global T* y, ulong y_offset, long q6, long g6, long q7, long g7,
                       long s0, long s1, long s2, long s3, long s4, long s5, long s6, long s7, long f0, long f1, long f2,
                       long f3, long f4, long f5, long f6, long f7, long t0, long t1, long t2, long t3,
                       long t4, long t5, long t6, long t7) {
    const long begin7 = (long)get_group_id(0) * TILE, begin6 = (long)get_group_id(1) * TILE;
    INDEX i = (INDEX)get_group_id(2);
    long xi = 0, yi = 0;
    OUTER_STEPS
    x += x_offset + xi + begin6;
    y += y_offset + yi + begin7;
    const int n7 = (int)min((long)TILE, s7 - begin7), n6 = (int)min((long)TILE, s6 - begin6);
    // Where element c of the tile's dimension 7 lies in x, and r of its dimension 6 in y.
#define IN_X(c) ((long)((INDEX)(begin7 + (c)) / (INDEX)q7) * g7 + (long)((INDEX)(begin7 + (c)) % (INDEX)q7) * f7)
#define IN_Y(r) ((long)((INDEX)(begin6 + (r)) / (INDEX)q6) * g6 + (long)((INDEX)(begin6 + (r)) % (INDEX)q6) * t6)
#if WIDE
    for (int r = 0; r < n6; ++r)
        for (int c = 0; c < n7; ++c) y[(begin6 + r) * t6 + c] = x[(begin7 + c) * f7 + r];
#else
    local T tile[TILE * (TILE + 1)];
    const int lane = (int)get_local_id(0), line = (int)get_local_id(1), lines = (int)get_local_size(1);
    for (int c = line; c < n7; c += lines)
        if (lane < n6) tile[lane * (TILE + 1) + c] = x[IN_X(c) + lane];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = line; r < n6; r += lines)
        if (lane < n7) y[IN_Y(r) + lane] = tile[r * (TILE + 1) + lane];
#endif
}

// The position in x (of size n, with p elements of padding in front) that coordinate c of y reads. Sets inside to 0 if
// c reads the constant.
static inline long source_position(long c, long p, long n, int* inside) {
    c -= p;
#if MODE == 0
    if (c < 0 || c >= n) *inside = 0;
#elif MODE == 1
    c = max(c, -c);
    c = min(c, 2 * (n - 1) - c);
#elif MODE == 3
    c = c < 0 ? c + n : c >= n ? c - n : c;
#else
    c = clamp(c, 0L, n - 1);
#endif
    return c;
}

#define PAD_STEP(d)                                                   \
    {                                                                 \
        INDEX c = i % (INDEX)s##d;                                    \
        i /= (INDEX)s##d;                                             \
        xi += source_position((long)c, p##d, n##d, &inside) * stride; \
        stride *= n##d;                                               \
    }

#define PAD_OUTER_STEPS PAD_STEP6 PAD_STEP5 PAD_STEP4 PAD_STEP3 PAD_STEP2 PAD_STEP1 PAD_STEP0
#if RANK > 1
#define PAD_STEP6 PAD_STEP(6)
#else
#define PAD_STEP6
#endif
#if RANK > 2
#define PAD_STEP5 PAD_STEP(5)
#else
#define PAD_STEP5
#endif
#if RANK > 3
#define PAD_STEP4 PAD_STEP(4)
#else
#define PAD_STEP4
#endif
#if RANK > 4
#define PAD_STEP3 PAD_STEP(3)
#else
#define PAD_STEP3
#endif
#if RANK > 5
#define PAD_STEP2 PAD_STEP(2)
#else
#define PAD_STEP2
#endif
#if RANK > 6
#define PAD_STEP1 PAD_STEP(1)
#else
#define PAD_STEP1
#endif
#if RANK > 7
#define PAD_STEP0 PAD_STEP(0)
#else
#define PAD_STEP0
#endif

// y of sizes s from x of sizes n, with p elements in front. WIDE: work-item (q, r) fills piece r (of `piece` elements)
// of row q of y (`count` rows). Otherwise a work-item fills one element (of `count`).
kernel void copy_padded(global const T* x, ulong x_offset, global T* y, ulong y_offset, ulong count,
                        long piece, ulong fill, long s0, long s1, long s2, long s3, long s4, long s5,
                        long s6, long s7, long n0, long n1, long n2, long n3, long n4, long n5, long n6, long n7,
                        long p0, long p1, long p2, long p3, long p4, long p5, long p6, long p7) {
    if (get_global_id(0) >= count) return;
    INDEX i = (INDEX)get_global_id(0);
    int inside = 1;
    x += x_offset;
    y += y_offset;
    long xi = 0;
#if WIDE
    long stride = n7;
    y += (long)i * s7;
    PAD_OUTER_STEPS
    long k = (long)get_global_id(1) * piece;
    const long stop = min(k + piece, s7);
#if MODE == 0
    // Columns [begin, end) have a source. The range is empty if the row has none.
    const long begin = inside ? clamp(p7, k, stop) : stop;
    const long end = inside ? clamp(n7 + p7, begin, stop) : stop;
    const T value = (T)fill;
    for (; k < begin; ++k) y[k] = value;
    global const T* row = x + xi - p7;
    for (; k + 16 <= end; k += 16) vstore16(vload16(0, row + k), 0, y + k);
    for (; k < end; ++k) y[k] = row[k];
    for (; k < stop; ++k) y[k] = value;
#else
    for (; k < stop; ++k) y[k] = x[xi + source_position(k, p7, n7, &inside)];
#endif
#else
    y += i;
    long stride = 1;
    PAD_STEP(7)
    PAD_OUTER_STEPS
    *y = inside ? x[xi] : (T)fill;
#endif
}
