// SPDX-License-Identifier: MIT
// The end of a product whose sums were split: y = the parts [splits][count] added in order, with bias and
// epilogue. One work-item an element; channel of element `at`: at / plane % channels. No local memory.

kernel void split_sum(global const float* parts, ulong parts_offset, global const float* bias, ulong bias_offset,
                      global float* y, ulong y_offset, long count, int splits, int has_bias, int channels,
                      long plane EPILOGUE_PARAMETERS) {
    const long at = get_global_id(0);
    if (at >= count) return;
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
    y[y_offset + at] = sum;
}
