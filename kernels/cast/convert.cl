// SPDX-License-Identifier: MIT
// cast.convert: y = x in another type.
//
// Define       meaning                                                        example (half to float)
// FROM, TO     types of the elements in memory; ushort for half and bfloat16   ushort, float
// FROM_VALUE   type in which an element of x is read                           float
// LOAD(p, i)   element i of p as a FROM_VALUE                                  vload_half
// STORE(v, p, i)  converts v and stores it as element i of p                   p[i] = v
// NEEDS_FP64   1 if one of the types is double                                 0
//
// Work-item: one element. Local memory: none.
#if NEEDS_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#include "common/bfloat.clh"

kernel void cast_convert(global const FROM* x, ulong x_offset, global TO* y, ulong y_offset,
                         long count) {
    const long i = get_global_id(0);
    if (i >= count) return;
    const FROM_VALUE v = LOAD((x + x_offset), i);
    STORE(v, (y + y_offset), i);
}
