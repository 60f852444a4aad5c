// SPDX-License-Identifier: MIT
// scatter.reference: combines slots of a tensor with updates (engine/indexing.clh), after a stable sort of the updates by
// slot:
//
//     slots     5 2 5 0        find_slots
//     sorted    0 2 5 5        engine/merge_sort.cl
//     order     3 1 0 2
//     bounds    slot 0: [0, 1)    slot 2: [1, 2)    slot 5: [2, 4)    others: none        find_bounds
//
// Each element then takes its updates one after the other. Sums of floats are compensated (Kahan), so that their error does
// not grow with their number.
//
// Define      meaning                                                                           example
// RAW         raw bits of an element: uchar, ushort, uint, ulong                                uint
// SUM         the type in which elements are combined                                           float
// REDUCTION   0 none (the last update replaces), 1 add, 2 mul, 3 max, 4 min, 5 mean             1
// STEP        elements of a slot that a work-item makes: more on CPUs                           1
// KEY         type of a slot's number: uint or ulong                                            uint
// KIND, T: see common/compared_element.clh
//
// Local memory: none.
#include "common/compared_element.clh"
#include "engine/indexing.clh"

#define SUMS (REDUCTION == 1 || REDUCTION == 5)
// Element `element` of the i-th update in the order of slots.
#define UPDATE(i) load_element(updates + updates_offset, (long)order[order_offset + (i)] * slice + element)

// A NaN is the largest and the smallest.
INLINE SUM combined(SUM a, SUM b) {
#if REDUCTION == 0
    return b;
#elif KIND == 5 && (SUMS || REDUCTION == 3)
    return a | b;
#elif KIND == 5
    return a & b;
#elif SUMS
    return a + b;
#elif REDUCTION == 2
    return a * b;
#elif REDUCTION == 3
    return a > b || a != a ? a : b;
#else
    return a < b || a != a ? a : b;
#endif
}

#if REDUCTION == 5
// Integers are rounded down.
SUM mean_of(SUM sum, int count) {
    if (count < 2) return sum;
#if KIND < 4
    return sum / count;
#elif KIND == 4
    const T whole = (T)sum;
    if (sizeof(T) == 8) return (SUM)(whole / (T)count - (whole % (T)count != 0 && whole < 0));
    const long wide = whole;
    return (SUM)(wide / count - (wide % count != 0 && wide < 0));
#else
    return sum;
#endif
}
#endif

// Work-item: one slot, of which no update is known yet.
kernel void clear_bounds(global int* firsts, ulong firsts_offset, global int* ends, ulong ends_offset, long count) {
    const long slot = get_global_id(0);
    if (slot >= count) return;
    firsts[firsts_offset + slot] = 0;
    ends[ends_offset + slot] = 0;
}

// Work-item: one update. One whose index is outside of its dimension goes behind all slots.
kernel void find_slots(global KEY* keys, ulong keys_offset, global const INDEX* indices, ulong indices_offset,
                       long count, long slots, long period, long group, long s0, long s1, long s2, long s3, long s4, long s5,
                       long s6, long s7, long f0, long f1, long f2, long f3, long f4, long f5, long f6, long f7,
                       long c0, long c1, long c2, long c3, long c4, long c5, long c6, long c7, long m0, long m1,
                       long m2, long m3, long m4, long m5, long m6, long m7,
                       global long* refused, int refused_by, int from_end) {
    const COUNT n = (COUNT)get_global_id(0);
    if (n >= (COUNT)count) return;
    long slot;
    int valid;
    FIND_SLOT(n, slot, valid)
    keys[keys_offset + n] = (KEY)(valid ? slot : slots);
}

// Work-item: one update of the sorted ones, which may be the first or the last of its slot.
kernel void find_bounds(global const KEY* keys, ulong keys_offset, global int* firsts, ulong firsts_offset,
                        global int* ends, ulong ends_offset, long count, long slots) {
    const long i = get_global_id(0);
    if (i >= count) return;
    keys += keys_offset;
    const KEY slot = keys[i];
    if (slot >= (KEY)slots) return;
    if (i == 0 || keys[i - 1] != slot) firsts[firsts_offset + slot] = (int)i;
    if (i == count - 1 || keys[i + 1] != slot) ends[ends_offset + slot] = (int)i + 1;
}

// Work-item: elements [piece * STEP, ...) of a slot. There are `pieces` of a slot and `count` of all.
kernel void apply_updates(global const int* order, ulong order_offset, global const int* firsts, ulong firsts_offset,
                          global const int* ends, ulong ends_offset, global const T* data, ulong data_offset,
                          global const T* updates, ulong updates_offset, global T* y, ulong y_offset, int has_data,
                          int includes_self, long count, long slice, long pieces) {
    const COUNT item = (COUNT)get_global_id(0);
    if (item >= (COUNT)count) return;
    const COUNT slot = item / (COUNT)pieces, piece = item % (COUNT)pieces;
    const long begin = (long)piece * STEP, own = (long)slot * slice + begin;
    const int length = (int)min((long)STEP, slice - begin);
    const int first = firsts[firsts_offset + slot], end = ends[ends_offset + slot];
    global T* to = y + y_offset + own;
    global const T* from = data + data_offset + own;
    if (first == end) {  // most slots of a large table
        global RAW* bits = (global RAW*)to;
        global const RAW* own_bits = (global const RAW*)from;
        for (int e = 0; e < length; ++e) bits[e] = has_data ? own_bits[e] : (RAW)0;
        return;
    }
    for (int e = 0; e < length; ++e) {
        const long element = begin + e;
        SUM sum = 0;
        if (has_data) sum = load_element(from, e);
#if SUMS && KIND < 4
        SUM lost = 0;
#endif
        int i = first;
        if (!includes_self) sum = UPDATE(i++);
        for (; i < end; ++i) {
            const SUM update = UPDATE(i);
#if SUMS && KIND < 4
            const SUM term = update - lost, next = sum + term;
            // Beyond the largest number nothing is lost that could be added again.
            lost = next - next == 0 ? (next - sum) - term : 0;
            sum = next;
#else
            sum = combined(sum, update);
#endif
        }
#if REDUCTION == 5
        sum = mean_of(sum, end - first + includes_self);
#endif
        store_element(to, e, sum);
    }
}
