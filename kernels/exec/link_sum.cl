// SPDX-License-Identifier: MIT
// Adds two vectors of floats and writes factor * (x + z) to several (src/exec/link_sum.hpp). Some of them lie in another
// device's memory, so that a work-item waits long for what it reads: each has four float4 of both vectors under way, and a
// few work-groups fill the link and leave the rest of the device to other kernels.
//
// These words are replaced:
// Word         meaning                              example
// LINK_OUTS    parameters for the results           , global float4* y0, ulong y0_offset, global float4* y1, ulong y1_offset
// LINK_PUT     writes `sum` to element i of each    y0[y0_offset + i] = sum; y1[y1_offset + i] = sum;
// LINK_REST    the same for float `sum`             ((global float*)(y0 + y0_offset))[i] = sum; ...
//
// Offsets count float4. `count` is that of the floats. Work-group: any. Local memory: none.
kernel void link_sum(global const float4* x, ulong x_offset, global const float4* z, ulong z_offset LINK_OUTS, long count,
                     float factor)
{
    x += x_offset;
    z += z_offset;
    const long fours = count / 4, step = get_global_size(0), item = get_global_id(0);
    long at = item;
    for (; at + 3 * step < fours; at += 4 * step) {
        float4 a[4], b[4];
        for (int k = 0; k < 4; k++) {
            a[k] = x[at + k * step];
            b[k] = z[at + k * step];
        }
        for (int k = 0; k < 4; k++) {
            const float4 sum = (a[k] + b[k]) * factor;
            const long i = at + k * step;
            LINK_PUT
        }
    }
    for (; at < fours; at += step) {
        const float4 sum = (x[at] + z[at]) * factor;
        const long i = at;
        LINK_PUT
    }
    if (item < count % 4) {
        const long i = fours * 4 + item;
        const float sum = (((global const float*)x)[i] + ((global const float*)z)[i]) * factor;
        LINK_REST
    }
}
