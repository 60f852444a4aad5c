// SPDX-License-Identifier: MIT
// Calls of the driver's functions, or of ours, whose results src/runtime/math_survey.cpp compares with the host's. A function
// has results for single numbers and for vectors, since drivers compute these in different ways: y has parts of `count` numbers.
//
// Define   meaning                                                                            example
// WIDE     1: vectors of 4, 2, 8 and 16, which are five parts; 0: of 4, which are two         1
//
//     TRY_ONE(try_0, tanh, float)     the kernel try_0, for a function of one number
//     TRY_TWO(try_1, pow, double)     the same for two
//
// math_survey.cpp writes such lines behind this text. A work-group is one work-item, and does all: PoCL joins the work-items of
// a group to loops, in which its fmod takes seconds. Where the functions of a driver are macros, as PoCL's are, kernels cannot
// have their names.

#define TRY_FOR(type, width, call)                                                \
    y += count;                                                                   \
    for (int i = 0; i < count; i += width) {                                      \
        const type##width u = vload##width(0, a + i), v = vload##width(0, b + i); \
        vstore##width(call, 0, y + i);                                            \
    }
#if WIDE
#define TRY_WIDE(type, call) TRY_FOR(type, 2, call) TRY_FOR(type, 8, call) TRY_FOR(type, 16, call)
#else
#define TRY_WIDE(type, call)
#endif
#define TRY(kernel_name, type, call)                                                                                           \
    kernel __attribute__((reqd_work_group_size(1, 1, 1))) void kernel_name(global const type* a, global const type* b, \
                                                                           global type* y, int count) {                \
        for (int i = 0; i < count; ++i) {                                                                              \
            const type u = a[i], v = b[i];                                                                             \
            y[i] = call;                                                                                               \
        }                                                                                                              \
        TRY_FOR(type, 4, call)                                                                                         \
        TRY_WIDE(type, call)                                                                                           \
    }
#define TRY_ONE(kernel_name, name, type) TRY(kernel_name, type, name(u))
#define TRY_TWO(kernel_name, name, type) TRY(kernel_name, type, name(u, v))
