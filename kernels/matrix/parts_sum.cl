// SPDX-License-Identifier: MIT
// Adds the partial sums of a product whose K was split (split-K), in order, and applies bias and epilogue.
//
//     parts   [ part 0: count floats ][ part 1 ] ... [ part splits - 1 ]
//                 |                       |                |
//     y       [   +-----------------------+----------------+-> bias, epilogue -> element `at` ]
//
// Define     meaning                              example
// C_STORED   type of y (common/storage.clh)       0
// and the epilogue (src/engine/epilogue.hpp).
//
// Elements are counted from `begin`, which is the start of an image. Of that image only pixels from `pixel` on are computed.
// The channel of element `at` is at / plane % channels.
// Work-item: one element. Work-group: of any size, its items share nothing. Local memory: none.
#include "common/storage.clh"

kernel void parts_sum(global const float* parts, ulong parts_offset, global const float* bias, ulong bias_offset,
                      global C_T* y, ulong y_offset, long count, long begin, int splits, int has_bias, int channels,
                      long plane, long pixel EPILOGUE_PARAMETERS) {
    const long at = begin + get_global_id(0);
    if (at >= count || (at - begin < channels * plane && at % plane < pixel)) return;
    parts += parts_offset + at;
    float sum = 0;
    int i = 0;
    for (; i + 4 <= splits; i += 4) {
        const float a = parts[0], b = parts[count], c = parts[2 * count], d = parts[3 * count];
        sum += a + b + (c + d);
        parts += 4 * count;
    }
    for (; i < splits; ++i) {
        sum += parts[0];
        parts += count;
    }
    if (has_bias) sum += bias[bias_offset + at / plane % channels];
    EPILOGUE(sum, at);
    C_PUT(y, y_offset + at, sum);
}
