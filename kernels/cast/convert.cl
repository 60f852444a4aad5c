// SPDX-License-Identifier: MIT
// y = x in another type; a work-item an element. No local memory.
// FROM, TO: the element types as stored (float, ushort for half and bfloat16, double, char, uchar, ...).
// LOAD(p, i): element i as a FROM_VALUE (float for all 16-bit floats). STORE(v, p, i): its conversion.
#if NEEDS_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

// Round to nearest, ties to even; NaN stays NaN.
static inline ushort to_bfloat16(float v) {
    const uint bits = as_uint(v);
    if (isnan(v)) return (ushort)((bits >> 16) | 0x40u);
    return (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

kernel void cast_convert(global const FROM* x, ulong x_offset, global TO* y, ulong y_offset,
                         long count) {
    const long i = get_global_id(0);
    if (i >= count) return;
    const FROM_VALUE v = LOAD((x + x_offset), i);
    STORE(v, (y + y_offset), i);
}
