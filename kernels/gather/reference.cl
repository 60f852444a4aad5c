// SPDX-License-Identifier: MIT
// gather.reference: copies the slots of a tensor that indices name (engine/indexing.clh), each of `slice` elements.
//
// Define   meaning                                              example
// T        an element's raw bits: uchar, ushort, uint, ulong    uint
// STEP     elements that a work-item copies: more on CPUs       1
//
// Local memory: none.
#include "engine/indexing.clh"

// Work-item: elements [piece * STEP, ...) of the slice of part n. There are `pieces` of a slice and `count` of all.
kernel void gather(global const T* x, ulong x_offset, global const INDEX* indices, ulong indices_offset, global T* y,
                   ulong y_offset, long count, long slice, long pieces, long period, long group, long s0, long s1, long s2,
                   long s3, long s4, long s5, long s6, long s7, long f0, long f1, long f2, long f3, long f4, long f5,
                   long f6, long f7, long c0, long c1, long c2, long c3, long c4, long c5, long c6, long c7, long m0,
                   long m1, long m2, long m3, long m4, long m5, long m6, long m7,
                   global long* refused, int refused_by, int from_end) {
    const COUNT item = (COUNT)get_global_id(0);
    if (item >= (COUNT)count) return;
    const COUNT n = item / (COUNT)pieces, piece = item % (COUNT)pieces;
    long slot;
    int valid;
    FIND_SLOT(n, slot, valid)
    const long at = (long)piece * STEP;
    global const T* from = x + x_offset + slot * slice + at;
    global T* to = y + y_offset + (long)n * slice + at;
#if STEP == 1
    to[0] = from[0];
#else
    const int length = (int)min((long)STEP, slice - at);
    for (int i = 0; i < length; ++i) to[i] = from[i];
#endif
}
