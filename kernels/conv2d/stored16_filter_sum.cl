// SPDX-License-Identifier: MIT
// Adds the partial sums of a filter gradient whose K was split, and brings taps to their place (filter_parts.clh).
//
// Define: the epilogue alone (src/engine/epilogue.hpp).
//
// Work-group: 32 elements, eight work-items for each. Local memory: 1 KiB.
#include "conv2d/filter_parts.clh"

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void stored16_filter_sum(
    global const float* parts, ulong parts_offset, global float* dweight, ulong dweight_offset, int count, int splits,
    int taps, int channels EPILOGUE_PARAMETERS) {
    local float sums[256];
    const int id = get_local_id(0), at = (int)get_group_id(0) * 32 + (id & 31);
    float sum = sum_of_parts(parts + parts_offset, sums, at, count, splits, taps, channels);
    if (id >= 32 || at >= count) return;
    EPILOGUE(sum, at);
    dweight[dweight_offset + at] = sum;
}
