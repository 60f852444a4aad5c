// SPDX-License-Identifier: MIT
// matmul.blocks_integers: one row of C = A W^T on CPUs, where the rows of W are GGUF's blocks (matrix/blocks.clh) and the
// products may be rounded: A becomes integers of 16 bits, and an instruction multiplies sixteen pairs and adds neighbours.
//
//     A:  32 numbers  ->  scale = largest / 32767,  32 integers
//     W:  32 numbers  =   scale * q + offset
//
//     sum over groups of 32  of  scale of A * scale of W * (sum of integers * q)  +  offset * (sum of A)
//
// The sums of integers are exact. Rounding A costs up to 2^-16 of the largest of 32 numbers. (GGML, Gerganov 2022, does the
// same with 8 bits, which is faster where A has many rows. Here reading and unpacking W decides.)
//
// Define                      meaning                                                     example
// BLOCK_TYPE, BLOCK_WEIGHTS,  the type of the blocks (matrix/blocks.clh), which has       3, 32,
// BLOCK_BYTES, ANY_ALIGNMENT  scales                                                      20, 1
// NV                          rows of W that are read at a time                           4
// MOST_COLUMNS                the most columns of a work-item                             256
// K_BLOCK                     numbers of A that are rounded at a time, a multiple of      1024
//                             BLOCK_WEIGHTS
// HAS_RESIDUAL, EPILOGUE(v, r)  as in matmul/blocks.cl
//
// Work-group: one work-item.
#include "matmul/blocks_put.clh"
#include "matrix/block_integers.clh"

#define GROUPS (BLOCK_PARTS / BLOCK_SHARED)

/// Products of sixteen pairs, of which each two neighbours are added.
INLINE int8 add_pairs(short16 a, short16 b) {
#if defined(__AVX2__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_pmaddwd256)
#define ADDS_PAIRS 1
#endif
#endif
#if ADDS_PAIRS
    typedef short shorts __attribute__((vector_size(32)));
    return __builtin_astype(__builtin_ia32_pmaddwd256(__builtin_astype(a, shorts), __builtin_astype(b, shorts)), int8);
#else
    const int16 products = convert_int16(a) * convert_int16(b);
    return products.even + products.odd;
#endif
}

/// A's numbers as integers, the scale of each 32, and the sums of each group of W.
typedef struct {
    short16 integers[K_BLOCK / 16];
    float scales[K_BLOCK / 32], sums[K_BLOCK / 16 / BLOCK_SHARED];
} Rounded;

INLINE float sum_of(float16 x) {
    const float8 h = x.lo + x.hi;
    const float4 q = h.lo + h.hi;
    const float2 p = q.lo + q.hi;
    return p.x + p.y;
}

/// The larger of two that are numbers. fmax() costs three instructions.
#define LARGER(a, b) ((a) > (b) ? (a) : (b))

INLINE float most_of(float16 x) {
    const float8 h = LARGER(x.lo, x.hi);
    const float4 q = LARGER(h.lo, h.hi);
    const float2 p = LARGER(q.lo, q.hi);
    return LARGER(p.x, p.y);
}

/// The nearest integers of numbers below 2^15, which are in the lowest bits of a sum with 1.5 * 2^23.
INLINE short16 nearest(float16 x) {
    return convert_short16(as_int16(x + (float16)(12582912.0f)) - (int16)(0x4b400000));
}

INLINE void round_inputs(global const float* a, int count, Rounded* to) {
    for (int p = 0; p < count; p += 32) {
        const float16 low = vload16(0, a + p), high = vload16(0, a + p + 16);
        const float16 low_size = fabs(low), high_size = fabs(high);
        const float most = most_of(LARGER(low_size, high_size));
        const float low_sum = sum_of(low), high_sum = sum_of(high), factor = most > 0 ? 32767.0f / most : 0.0f;
        to->integers[p / 16] = nearest(low * factor);
        to->integers[p / 16 + 1] = nearest(high * factor);
        // What is no number stays none: comparisons may pass over it, sums do not.
        to->scales[p / 32] = isfinite(low_sum + high_sum) ? most / 32767.0f : NAN;
#if BLOCK_SHARED == 2
        to->sums[p / 32] = low_sum + high_sum;
#else
        to->sums[p / 16] = low_sum;
        to->sums[p / 16 + 1] = high_sum;
#endif
    }
}

/// Adds the products of `count` numbers with NV rows of W, of which `columns` exist, to `sums`.
INLINE void add_sums(const Rounded* x, int count, global const uchar* b, long row_bytes, int columns, float* sums) {
    global const uchar* from[NV];
    float8 acc[NV];
    float offsets[NV];
#pragma unroll
    for (int v = 0; v < NV; ++v) {
        from[v] = b + min(v, columns - 1) * row_bytes;
        acc[v] = (float8)(0.0f);
        offsets[v] = 0.0f;
    }
    for (int p = 0; p < count; p += BLOCK_WEIGHTS) {
#pragma unroll
        for (int group = 0; group < GROUPS; ++group) {
            const int at = p + group * BLOCK_SHARED * 16;
            const float x_scale = x->scales[at / 32];
            short16 integers[BLOCK_SHARED];
#pragma unroll
            for (int i = 0; i < BLOCK_SHARED; ++i) integers[i] = x->integers[at / 16 + i];
#pragma unroll
            for (int v = 0; v < NV; ++v) {
                const float2 scale = block_scale(from[v], group);
                int8 sum = add_pairs(block_integers(from[v], group * BLOCK_SHARED), integers[0]);
#if BLOCK_SHARED == 2
                sum += add_pairs(block_integers(from[v], group * BLOCK_SHARED + 1), integers[1]);
#endif
                acc[v] = convert_float8(sum) * (scale.x * x_scale) + acc[v];
#if BLOCK_HAS_OFFSET
                offsets[v] += scale.y * x->sums[at / 16 / BLOCK_SHARED];
#endif
            }
        }
#pragma unroll
        for (int v = 0; v < NV; ++v) from[v] += BLOCK_BYTES;
    }
#pragma unroll
    for (int v = 0; v < NV; ++v) {
        const float4 q = acc[v].lo + acc[v].hi;
        const float2 h = q.lo + q.hi;
        sums[v] += h.x + h.y + offsets[v];
    }
}

// Work-item: `columns` columns of C, whose A has one row.
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void matmul_blocks_integers(
    global const float* a, ulong a_offset, global const uchar* b, ulong b_offset, global const float* bias, ulong bias_offset,
    global const float* residual, ulong residual_offset, global float* c, ulong c_offset, int n, int k, int columns, int has_bias) {
    const int first = get_global_id(0) * columns, last = min(n, first + columns);
    const long row_bytes = (long)(k / BLOCK_WEIGHTS) * BLOCK_BYTES;
    a += a_offset;
    b += b_offset;
    float sums[MOST_COLUMNS + NV];
    for (int i = 0; i < columns + NV; ++i) sums[i] = 0.0f;
    Rounded x;
    for (int k0 = 0; k0 < k; k0 += K_BLOCK) {
        const int count = min(K_BLOCK, k - k0);
        round_inputs(a + k0, count, &x);
        for (int column = first; column < last; column += NV)
            add_sums(&x, count, b + column * row_bytes + (long)(k0 / BLOCK_WEIGHTS) * BLOCK_BYTES, row_bytes,
                     min(NV, last - column), sums + column - first);
    }
    for (int column = first; column < last; ++column)
        put(sums[column - first], column, column, has_bias, c + c_offset, bias + bias_offset, residual + residual_offset);
}
