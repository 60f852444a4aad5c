// SPDX-License-Identifier: MIT
// Measures how many multiply-adds the device does per second: each work-item has CHAINS sums, so that a multiply-add need not
// wait for the one before it.
//
//     y[work-item] = the sum of its CHAINS sums after STEPS multiply-adds each, over all lanes
//
// Define   meaning                                    example
// LANES    floats of a vector                         16
// CHAINS   independent sums of a work-item            8
// STEPS    multiply-adds in each of them              1024
//
// A work-item owns its sums. Local memory: none.
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#if LANES == 1
typedef float vector;
#else
typedef JOIN(float, LANES) vector;
#endif

kernel void probe(global float* y, ulong y_offset) {
    y += y_offset;
    const vector factor = (vector)(0.999f), step = (vector)(1e-3f * (get_global_id(0) % 7));
    vector sums[CHAINS];
    for (int c = 0; c < CHAINS; ++c) sums[c] = (vector)((float)c);
    for (int i = 0; i < STEPS; ++i)
        for (int c = 0; c < CHAINS; ++c) sums[c] = mad(sums[c], factor, step);
    vector all = sums[0];
    for (int c = 1; c < CHAINS; ++c) all += sums[c];
#if LANES == 1
    y[get_global_id(0)] = all;
#else
    float lanes[LANES];
    JOIN(vstore, LANES)(all, 0, lanes);
    float sum = 0;
    for (int i = 0; i < LANES; ++i) sum += lanes[i];
    y[get_global_id(0)] = sum;
#endif
}
