// SPDX-License-Identifier: MIT
// Measures what a driver is slow at (src/runtime/speed_trials.hpp): many multiply-adds of a work-item, in four sums, so that one
// need not wait for the one before it. The sums are no array, since zink 25 ends its process over arrays of vectors
// (tests/implementations/vector_array.c).
//
// Define   meaning                                    example
// LANES    floats of a vector                         16
// CALL     what computes a multiply-add               mad
//
// A work-item writes an element of y. Local memory: none.
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if LANES == 1
typedef float vector;
#else
typedef JOIN(float, LANES) vector;
#endif

kernel void probe(global float* y) {
    const vector factor = (vector)(0.999f), step = (vector)(1e-3f * (get_global_id(0) % 7));
    vector a = step, b = a + 1.0f, c = a + 2.0f, d = a + 3.0f;
    for (int i = 0; i < 256; ++i) {
        a = CALL(a, factor, step);
        b = CALL(b, factor, step);
        c = CALL(c, factor, step);
        d = CALL(d, factor, step);
    }
    a += b + c + d;
#if LANES == 1
    y[get_global_id(0)] = a;
#else
    float lanes[LANES];
    JOIN(vstore, LANES)(a, 0, lanes);
    float sum = 0;
    for (int i = 0; i < LANES; ++i) sum += lanes[i];
    y[get_global_id(0)] = sum;
#endif
}
