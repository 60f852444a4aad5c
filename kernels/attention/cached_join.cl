// SPDX-License-Identifier: MIT
// Combines the results of the parts of attention over caches, in the order of the parts: each has its largest score m in base 2,
// its sum l of the weights 2^(score - m), and its weighted sum a of values.
//
//     M = max of m,    y = (sum of 2^(m - M) a) / (sum of 2^(m - M) l)
//
// A work-group of LANES work-items has a row.
#include "common/inline.clh"

kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void attention_cached_join(global const float* made, ulong made_offset,
                                                                                     global float* y, ulong y_offset,
                                                                                     int parts, int features) {
    const int step = features + 2;
    made += made_offset + (long)get_group_id(0) * parts * step;
    y += y_offset + (long)get_group_id(0) * features;
    float most = -INFINITY;
    for (int p = 0; p < parts; ++p) most = fmax(most, made[p * step]);
    const float base = most == -INFINITY ? 0.0f : most;
    for (int e = get_local_id(0); e < features; e += LANES) {
        float sum = 0, weights = 0;
        for (int p = 0; p < parts; ++p) {
            const float weight = made[p * step + 1];
            if (weight == 0) continue;  // nothing of the part counts, and its values are not written
            const float factor = exp2(made[p * step] - base);
            weights = mad(factor, weight, weights);
            sum = mad(factor, made[p * step + 2 + e], sum);
        }
        y[e] = weights == 0 ? 0.0f : sum / weights;
    }
}
