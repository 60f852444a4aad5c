// SPDX-License-Identifier: MIT
// cast.narrow: y = x in another type, where one of both is narrow: a float of 4 or 8 bits, a power
// of two, or an integer of 2 or 4 bits, in a byte each. src/base/narrow.cpp says the same for hosts.
//
// Define               meaning                                                   example
// FROM, TO             types of the elements in memory                           float, uchar
// FROM_KIND, TO_KIND   0 plain, 1 half, 2 bfloat16, 3 bool, 4 narrow float,      0, 4
//                      5 power of two (float8e8m0), 6 narrow integer
// TO_FLOAT             of a plain type: whether it is a float                    1
// TO_EXPONENT, TO_MANTISSA, TO_BIAS  of a narrow float: bits, and the bias       4, 3, 7
// TO_LARGEST, TO_INFINITE, TO_NAN    its codes of the largest number, of what    0x7e, 0x7f, 0x7f
//                      is larger, and of NaN
// TO_ONE_ZERO          whether zero has no sign and NaN is one code              0
// CONVERT_SAT          of a plain integer type: OpenCL's conversion to it        convert_int_sat
// TO_BITS, TO_SIGNED   of a narrow integer                                       4, 1
// NEEDS_FP64           1 if one of the types is double                           0
//
// FROM_... of the same names say it of x. Work-item: one element. Local memory: none.
#if NEEDS_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
#else
typedef float real;
#endif
#include "common/bfloat.clh"

#if FROM_KIND == 0 && !FROM_FLOAT
typedef FROM value_type;  // integers stay integers
#define VALUE_FLOAT 0
#elif FROM_KIND == 6 || FROM_KIND == 3
typedef long value_type;
#define VALUE_FLOAT 0
#else
typedef real value_type;
#define VALUE_FLOAT 1
#endif

static inline long low_bits(long value, int bits, int has_sign) {
    const long low = value & ((1 << bits) - 1);
    return has_sign && (low >> (bits - 1)) ? low - (1 << bits) : low;
}

static inline value_type load(global const FROM* x, long i) {
#if FROM_KIND == 1
    return vload_half(i, x);
#elif FROM_KIND == 2
    return as_float((uint)x[i] << 16);
#elif FROM_KIND == 3
    return x[i] != 0;
#elif FROM_KIND == 4
    const int code = x[i], sign = 1 << (FROM_EXPONENT + FROM_MANTISSA), rest = code & (sign - 1);
    const int field = rest >> FROM_MANTISSA, mantissa = rest & ((1 << FROM_MANTISSA) - 1);
    if (FROM_ONE_ZERO && code == FROM_NAN) return NAN;
    if (rest > FROM_LARGEST) {
        if (rest != FROM_INFINITE || FROM_INFINITE == FROM_NAN) return NAN;
        return code & sign ? -INFINITY : INFINITY;
    }
    const real size = field == 0
                          ? ldexp((real)mantissa, 1 - FROM_BIAS - FROM_MANTISSA)
                          : ldexp((real)(mantissa + (1 << FROM_MANTISSA)), field - FROM_BIAS - FROM_MANTISSA);
    return code & sign ? -size : size;
#elif FROM_KIND == 5
    // By its bits, since 2^-127 is no normal float.
    const uint code = x[i];
    return code == 0xff ? NAN : as_float(code == 0 ? 0x400000u : code << 23);
#elif FROM_KIND == 6
    return low_bits(x[i], FROM_BITS, FROM_SIGNED);
#else
    return x[i];
#endif
}

#if TO_KIND == 4
static inline uchar to_narrow_float(real v) {
    const int sign = signbit(v) ? 1 << (TO_EXPONENT + TO_MANTISSA) : 0, one = 1 << TO_MANTISSA;
    int code = TO_NAN;
    if (isinf(v)) code = TO_INFINITE;
    if (isfinite(v)) {
        const real size = fmin(fabs(v), (real)1e30f);
        int exponent = size == 0 ? 1 - TO_BIAS : max(ilogb(size), 1 - TO_BIAS);
        long units = (long)rint(ldexp(size, TO_MANTISSA - exponent));
        if (units == 2 * one) {
            units = one;
            ++exponent;
        }
        const long whole = units < one ? units : ((long)(exponent + TO_BIAS) << TO_MANTISSA) + units - one;
        code = whole > TO_LARGEST ? TO_INFINITE : (int)whole;
    }
    return (uchar)(TO_ONE_ZERO && (code == 0 || code == TO_NAN) ? code : code | sign);
}
#endif

#if TO_KIND == 5
static inline uchar to_power(float v) {
    const uint bits = as_uint(v);
    if (isnan(v) || isinf(v) || (bits >> 31)) return bits == 0x80000000u ? 0 : 0xff;
    // Half of the mantissa or more rounds up; below 2^-126 the bits are no normal float's.
    const uint code = bits < 0x800000u ? (bits >= 0x600000u) : (bits + 0x400000u) >> 23;
    return (uchar)code;
}
#endif

static inline void store(global TO* y, long i, value_type v) {
#if TO_KIND == 1
    vstore_half_rte((float)v, i, y);
#elif TO_KIND == 2
    y[i] = to_bfloat16((float)v);
#elif TO_KIND == 3
    y[i] = v != 0;
#elif TO_KIND == 4
    y[i] = to_narrow_float((real)v);
#elif TO_KIND == 5
    y[i] = to_power(convert_float_rtz(v));  // towards zero, so that nothing is rounded up twice
#elif TO_KIND == 6 && VALUE_FLOAT
    y[i] = (uchar)low_bits(isnan(v) ? 0 : convert_int_sat(v), TO_BITS, TO_SIGNED);
#elif TO_KIND == 6
    y[i] = (uchar)low_bits(v, TO_BITS, TO_SIGNED);
#elif VALUE_FLOAT && !TO_FLOAT
    y[i] = isnan(v) ? (TO)0 : CONVERT_SAT(v);
#else
    y[i] = (TO)v;
#endif
}

kernel void cast_narrow(global const FROM* x, ulong x_offset, global TO* y, ulong y_offset, long count) {
    const long i = get_global_id(0);
    if (i < count) store(y + y_offset, i, load(x + x_offset, i));
}
