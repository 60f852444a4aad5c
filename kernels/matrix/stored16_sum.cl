// SPDX-License-Identifier: MIT
// The end of a convolution whose sums were split: y = the parts [splits][count] added in order, with bias and epilogue,
// channels last. A work-item four channels (LANES 4, channels are a multiple of four) or one. No local memory.
//
// Defines: LANES; Y_KIND (round16.clh).
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
    JOIN(PUT_4_, Y_KIND)(y, v.x, v.y, v.z, v.w)
#else
    float v = 0;
    for (int i = 0; i < splits; ++i, parts += count) v += parts[0];
    if (has_bias) v += bias[channel];
    EPILOGUE(v, at);
    JOIN(PUT_, Y_KIND)(y, v)
#endif
}
