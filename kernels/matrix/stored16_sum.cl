// SPDX-License-Identifier: MIT
// Adds the partial sums of a product of 16-bit operands whose K was split (split-K), in order, and applies bias and epilogue.
// The result has its channels last.
//
//     parts   [ part 0: count floats ][ part 1 ] ... [ part splits - 1 ]
//                 |                       |                |
//     y       [   +-----------------------+----------------+-> bias, epilogue -> LANES channels from `at` on ]
//
// Define   meaning                                                                    example
// LANES    channels per work-item: 4 if channels are a multiple of four, else 1       4
// Y_KIND   type of y: 0 float, 1 half, 2 bfloat16 (round16.clh)                       1
// and the epilogue (src/engine/epilogue.hpp) on LANES floats.
//
// Work-item: LANES channels of a pixel. Work-group: of any size, its items share nothing. Local memory: none.
#include "matrix/round16.clh"
#define Y_TYPE JOIN(STORED_, Y_KIND)

kernel void stored16_sum(global const float* parts, ulong parts_offset, global const float* bias, ulong bias_offset,
                           global Y_TYPE* y, ulong y_offset, long count, int splits, int has_bias,
                           int channels EPILOGUE_PARAMETERS) {
    const long at = get_global_id(0) * LANES;
    if (at >= count) return;
    const int channel = at % channels;
    parts += parts_offset + at;
    bias += bias_offset;
    y += y_offset + at;
#if LANES == 4
    float4 v = (float4)(0.0f);
    for (int i = 0; i < splits; ++i, parts += count) v += *(global const float4*)parts;
    if (has_bias) v += vload4(0, bias + channel);
    EPILOGUE(v, at);
    JOIN(put_4_, Y_KIND)(v.x, v.y, v.z, v.w, y);
#else
    float v = 0;
    for (int i = 0; i < splits; ++i, parts += count) v += parts[0];
    if (has_bias) v += bias[channel];
    EPILOGUE(v, at);
    JOIN(put_, Y_KIND)(v, y);
#endif
}
