// SPDX-License-Identifier: MIT
// topk.reference: keys of elements for a merge sort, and the elements that it brought to the front. Element j of line
// (o, i) lies at (o * length + j) * inner + i.
//
// Define     meaning                                                                  example
// T          an element's raw bits: uchar, ushort, uint, ulong                        uint
// KEY        type of a key: uint or ulong                                             uint
// SIGN       the bit of the sign; 0 of unsigned integers                              0x80000000UL
// INFINITE   of floats: the bits of infinity, above which are NaNs; 0 of integers     0x7f800000UL
// ALL        all bits of T                                                            0xffffffffUL
// LARGEST    1: the largest elements have the smallest keys                           1
//
// Local memory: none.

// Work-item: one element's key, in its line of keys.
kernel void make_keys(global const T* x, ulong x_offset, global KEY* keys, ulong keys_offset, long count, long length,
                      long inner) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const long i = at % inner, j = at / inner % length, o = at / inner / length;
    ulong bits = x[x_offset + at];
#if INFINITE
    const ulong magnitude = bits & ~SIGN;
    const int negative = (bits & SIGN) != 0 && magnitude != 0;
    bits = magnitude > INFINITE ? ALL : negative ? ~bits & ALL : magnitude | SIGN;
#else
    bits ^= SIGN;
#endif
#if LARGEST
    bits = ~bits & ALL;
#endif
    keys[keys_offset + (o * inner + i) * length + j] = (KEY)bits;
}

// Work-item: one element of the result. `sorted` has the positions of each line's first k elements.
kernel void take_values(global const T* x, ulong x_offset, global const int* sorted, ulong sorted_offset,
                        global T* values, ulong values_offset, global long* positions, ulong positions_offset,
                        long count, long length, long inner, long k) {
    const long at = get_global_id(0);
    if (at >= count) return;
    const long i = at % inner, j = at / inner % k, o = at / inner / k;
    const long from = sorted[sorted_offset + (o * inner + i) * k + j];
    values[values_offset + at] = x[x_offset + (o * length + from) * inner + i];
    positions[positions_offset + at] = from;
}
