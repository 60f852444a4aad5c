// SPDX-License-Identifier: MIT
// Adds the partial sums of a filter gradient whose K was split (split-K), and brings taps to their place.
//
//     parts     [ part ][ output channel ][ tap ][ input channel ]
//                  |  part % 8 is a work-item's slice; then the eight slices of an element are added in local memory
//                  v
//     dweight   [ output channel ][ input channel ][ tap ]
//
// Define: the epilogue alone (src/engine/epilogue.hpp).
//
// Work-group: 32 elements, eight work-items for each. The order of additions depends on the number of parts alone.
// Local memory: 1 KiB.

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void stored16_filter_sum(
    global const float* parts, ulong parts_offset, global float* dweight, ulong dweight_offset, int count, int splits,
    int taps, int channels EPILOGUE_PARAMETERS) {
    local float sums[256];
    const int id = get_local_id(0), slice = id >> 5, at = (int)get_group_id(0) * 32 + (id & 31);
    float sum = 0;
    if (at < count) {
        const int o = at / (taps * channels), inside = at - o * (taps * channels);
        const int c = inside / taps, tap = inside - c * taps;
        global const float* from = parts + parts_offset + ((ulong)(o * taps + tap) * channels + c);
        int i = slice;
        for (; i + 24 < splits; i += 32) {
            const float a0 = from[(ulong)i * count], a1 = from[(ulong)(i + 8) * count];
            const float a2 = from[(ulong)(i + 16) * count], a3 = from[(ulong)(i + 24) * count];
            sum += a0 + a1 + (a2 + a3);
        }
        for (; i < splits; i += 8) sum += from[(ulong)i * count];
    }
    sums[id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (slice > 0 || at >= count) return;
    for (int i = 1; i < 8; ++i) sum += sums[id + 32 * i];
    EPILOGUE(sum, at);
    dweight[dweight_offset + at] = sum;
}
