// SPDX-License-Identifier: MIT
// scan.reference: running sums, products, extremes and logarithms of sums along lines. Element k of line (o, i), counted
// from where the line is walked, lies at (o * length + j) * inner + i, where j is k or, in reverse, length - 1 - k. Lines
// are cut into chunks, whose totals are scanned in the same way, level by level:
//
//     elements    3 1 4 1 | 5 9 2 6 | 5 3          chunks of 4
//     totals      9         22        8            total_elements (and total_totals of further levels)
//     before      0         9         31           scan_totals, in place: what stands before each chunk
//     results     3 4 8 9 | 14 23 25 31 | 36 39    scan_elements
//
// A state is what is known of some elements that lie side by side. It has two parts:
//
//     METHOD            first part          second part
//     0 sum             the sum             of floats: what its roundings lost (two-sum, Knuth), unless it is in double
//     1 prod            the product         -
//     2 max, 3 min      the extreme         its position, -1 if there are no elements
//     4 logsumexp       the maximum m       the sum of exp(x - m)
//
// Define     meaning                                                                         example
// METHOD     see above                                                                       0
// RESULT     the results' type in memory; it differs from T for integers and bool alone      float
// TRUTH      1: results are bool                                                             0
// DOUBLE     1: sums of 32 or 16 bits are in double, which on CPUs is quicker                1
// KIND, T, VALUE: see common/compared_element.clh
//
// Local memory: none.
#if DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#include "common/compared_element.clh"
#include "common/inline.clh"

#if METHOD < 2 && KIND >= 4
#define FIRST ulong  // of which the low bits are the result, whatever the sign
#elif DOUBLE
#define FIRST double
#else
#define FIRST VALUE
#endif
#if METHOD == 2 || METHOD == 3
#define SECOND long
#elif KIND >= 4 || DOUBLE
#define SECOND int
#else
#define SECOND VALUE
#endif

typedef struct {
    FIRST first;
    SECOND second;
} State;

// Of no elements.
INLINE State nothing(void) {
    State s;
#if METHOD == 0
    s.first = 0;
    s.second = 0;
#elif METHOD == 1
    s.first = 1;
    s.second = 0;
#elif METHOD == 4
    s.first = -INFINITY;
    s.second = 0;
#else
    s.first = 0;
    s.second = -1;
#endif
    return s;
}

// Of the element at position j.
INLINE State state_of(VALUE value, long j) {
    State s;
    s.first = (FIRST)value;
#if METHOD == 4
    s.second = 1;
#elif METHOD == 2 || METHOD == 3
    s.second = j;
#else
    s.second = 0;
#endif
    return s;
}

// Of the elements of a and those of b, which lie behind them.
INLINE State joined(State a, State b) {
    State s;
#if METHOD == 0 && KIND < 4 && !DOUBLE
    // The second part stays below a rounding of the first, so that its own roundings do not add up.
    const VALUE sum = a.first + b.first, part = sum - a.first;
    const VALUE lost = (a.first - (sum - part)) + (b.first - part) + (a.second + b.second);
    s.first = sum + lost;
    s.second = lost - (s.first - sum);
    if (!(sum - sum == 0)) {  // beyond the largest number nothing is lost that could be added again
        s.first = sum;
        s.second = 0;
    }
#elif METHOD == 0
    s.first = a.first + b.first;
    s.second = 0;
#elif METHOD == 1
    s.first = a.first * b.first;
    s.second = 0;
#elif METHOD == 4
    if (a.first == b.first) {  // infinities, too
        s.first = a.first;
        s.second = a.second + b.second;
    } else if (a.first > b.first) {
        s.first = a.first;
        s.second = a.second + b.second * exp(b.first - a.first);
    } else if (a.first < b.first) {
        s.first = b.first;
        s.second = b.second + a.second * exp(a.first - b.first);
    } else {
        s.first = a.first + b.first;  // NaN
        s.second = 1;
    }
#else
    // The last of equal elements counts, and the last NaN.
#if METHOD == 2
    const int is_beyond = b.first >= a.first;
#else
    const int is_beyond = b.first <= a.first;
#endif
    if (b.second < 0)
        s = a;
    else if (a.second < 0 || is_nan(b.first) || (is_beyond && !is_nan(a.first)))
        s = b;
    else
        s = a;
#endif
    return s;
}

INLINE State read_state(global const FIRST* firsts, global const SECOND* seconds, long at) {
    State s;
    s.first = firsts[at];
    s.second = seconds[at];
    return s;
}

INLINE void write_state(global FIRST* firsts, global SECOND* seconds, long at, State s) {
    firsts[at] = s.first;
    seconds[at] = s.second;
}

INLINE void put(global RESULT* y, long at, State s) {
#if METHOD == 4
    store_element(y, at, s.first + log(s.second));
#elif METHOD == 0 && KIND < 4
    store_element(y, at, (VALUE)(s.first + s.second));
#elif TRUTH
    y[at] = s.first != 0;
#elif KIND < 4
    store_element(y, at, s.first);
#else
    y[at] = (RESULT)s.first;
#endif
}

// Work-item: the total of one of the `chunks` of a line.
kernel void total_elements(global const T* x, ulong x_offset, global FIRST* firsts, ulong firsts_offset,
                           global SECOND* seconds, ulong seconds_offset, long count, long length, long inner,
                           long chunks, long chunk, int reverse) {
    const long item = get_global_id(0);
    if (item >= count) return;
    const long i = item % inner, begin = item / inner % chunks * chunk, o = item / inner / chunks;
    global const T* line = x + x_offset + o * length * inner + i;
    const long end = min(begin + chunk, length);
    State s = nothing();
    for (long k = begin; k < end; ++k) {
        const long j = reverse ? length - 1 - k : k;
        s = joined(s, state_of(load_element(line, j * inner), j));
    }
    write_state(firsts + firsts_offset, seconds + seconds_offset, item, s);
}

// Work-item: the total of one chunk of totals.
kernel void total_totals(global const FIRST* firsts, ulong firsts_offset, global const SECOND* seconds,
                         ulong seconds_offset, global FIRST* next_firsts, ulong next_firsts_offset,
                         global SECOND* next_seconds, ulong next_seconds_offset, long count, long length, long inner,
                         long chunks, long chunk) {
    const long item = get_global_id(0);
    if (item >= count) return;
    const long i = item % inner, begin = item / inner % chunks * chunk, o = item / inner / chunks;
    const long end = min(begin + chunk, length);
    State s = nothing();
    for (long k = begin; k < end; ++k)
        s = joined(s, read_state(firsts + firsts_offset, seconds + seconds_offset, (o * length + k) * inner + i));
    write_state(next_firsts + next_firsts_offset, next_seconds + next_seconds_offset, item, s);
}

// Work-item: one chunk of totals, of which each becomes what stands before it. With `has_before` the next level says what
// stands before the chunk.
kernel void scan_totals(global FIRST* firsts, ulong firsts_offset, global SECOND* seconds, ulong seconds_offset,
                        global const FIRST* next_firsts, ulong next_firsts_offset, global const SECOND* next_seconds,
                        ulong next_seconds_offset, int has_before, long count, long length, long inner, long chunks,
                        long chunk) {
    const long item = get_global_id(0);
    if (item >= count) return;
    const long i = item % inner, begin = item / inner % chunks * chunk, o = item / inner / chunks;
    const long end = min(begin + chunk, length);
    State s = nothing();
    if (has_before) s = read_state(next_firsts + next_firsts_offset, next_seconds + next_seconds_offset, item);
    for (long k = begin; k < end; ++k) {
        const long at = (o * length + k) * inner + i;
        const State own = read_state(firsts + firsts_offset, seconds + seconds_offset, at);
        write_state(firsts + firsts_offset, seconds + seconds_offset, at, s);
        s = joined(s, own);
    }
}

// Work-item: the results of one chunk. With `has_before` the totals say what stands before it.
kernel void scan_elements(global const T* x, ulong x_offset, global const FIRST* firsts, ulong firsts_offset,
                          global const SECOND* seconds, ulong seconds_offset, global RESULT* y, ulong y_offset,
                          global long* positions, ulong positions_offset, int has_before, int exclusive, int reverse,
                          long count, long length, long inner, long chunks, long chunk) {
    const long item = get_global_id(0);
    if (item >= count) return;
    const long i = item % inner, begin = item / inner % chunks * chunk, o = item / inner / chunks;
    const long end = min(begin + chunk, length);
    const long line = o * length * inner + i;
    State s = nothing();
    if (has_before) s = read_state(firsts + firsts_offset, seconds + seconds_offset, item);
    for (long k = begin; k < end; ++k) {
        const long j = reverse ? length - 1 - k : k;
        const long at = line + j * inner;
        const State with = joined(s, state_of(load_element(x + x_offset, at), j));
        if (exclusive)
            put(y + y_offset, at, s);
        else
            put(y + y_offset, at, with);
#if METHOD == 2 || METHOD == 3
        positions[positions_offset + at] = with.second;
#endif
        s = with;
    }
}
