// SPDX-License-Identifier: MIT
// scatter.winners: replaces slots of a tensor by updates (engine/indexing.clh). Of several updates of a slot the last one
// wins, which an integer maximum of their positions finds.
//
//     clear_winners    winners[slot] = -1
//     choose_winners   winners[slot of update n] = max(winners[slot], n)
//     write_winners    y[slot] = winners[slot] < 0 ? data[slot] : updates[winners[slot]]
//
// Define   meaning                                              example
// T        an element's raw bits: uchar, ushort, uint, ulong    uint
// STEP     elements that a work-item writes: more on CPUs       1
//
// Local memory: none.
#include "engine/indexing.clh"

// Work-item: one slot.
kernel void clear_winners(global int* winners, ulong winners_offset, long count) {
    const long slot = get_global_id(0);
    if (slot < count) winners[winners_offset + slot] = -1;
}

// Work-item: one update. One whose index is outside of its dimension is left out.
kernel void choose_winners(global int* winners, ulong winners_offset, global const INDEX* indices,
                           ulong indices_offset, long count, long period, long group, long s0, long s1, long s2, long s3, long s4,
                           long s5, long s6, long s7, long f0, long f1, long f2, long f3, long f4, long f5, long f6,
                           long f7, long c0, long c1, long c2, long c3, long c4, long c5, long c6, long c7, long m0,
                           long m1, long m2, long m3, long m4, long m5, long m6, long m7,
                           global long* refused, int refused_by, int from_end) {
    const COUNT n = (COUNT)get_global_id(0);
    if (n >= (COUNT)count) return;
    long slot;
    int valid;
    FIND_SLOT(n, slot, valid)
    if (valid) atomic_max(&winners[winners_offset + slot], (int)n);
}

// Work-item: elements [piece * STEP, ...) of a slot. There are `pieces` of a slot and `count` of all. Without data, slots
// that no update names are zero.
kernel void write_winners(global const int* winners, ulong winners_offset, global const T* data, ulong data_offset,
                          global const T* updates, ulong updates_offset, global T* y, ulong y_offset, int has_data,
                          long count, long slice, long pieces) {
    const COUNT item = (COUNT)get_global_id(0);
    if (item >= (COUNT)count) return;
    const COUNT slot = item / (COUNT)pieces, piece = item % (COUNT)pieces;
    const long at = (long)piece * STEP, own = (long)slot * slice + at;
    const int winner = winners[winners_offset + slot];
    const int length = (int)min((long)STEP, slice - at);
    global T* to = y + y_offset + own;
    if (winner < 0 && !has_data) {
        for (int i = 0; i < length; ++i) to[i] = 0;
        return;
    }
    global const T* from = winner < 0 ? data + data_offset + own : updates + updates_offset + (long)winner * slice + at;
    for (int i = 0; i < length; ++i) to[i] = from[i];
}
