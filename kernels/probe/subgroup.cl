// SPDX-License-Identifier: MIT
// Tests whether the sub-group functions that common/subgroup.clh needs work on this device: block reads of one, two and four
// values per lane, and the broadcast of one lane's value.
//
//     y[0 .. 2048)      input, y[i] = i
//     y[2048 .. 4096)   16 results for each of the 128 work-items: its lane, its sub-group, its values of the three blocks
//                       (which begin at 128 times its sub-group), lane SG - 1's value of the first block, and zeros
//
// Define   meaning                     example
// SG       lanes of a sub-group        16
//
// Work-group: 128 work-items. Local memory: none.
#define TM 1
#define TN 4
#define GROUPS (128 / SG)
#include "common/subgroup.clh"

kernel __attribute__((reqd_work_group_size(128, 1, 1))) __attribute__((intel_reqd_sub_group_size(SG))) void
probe(global float* y, ulong y_offset) {
    y += y_offset;
    const int id = get_local_id(0);
    for (int i = id; i < 2048; i += 128) y[i] = i;
    barrier(CLK_GLOBAL_MEM_FENCE);
    global const float* from = y + 128 * get_sub_group_id();
    float four[4];
    lane_floats(four, from);
    const float2 two = as_float2(intel_sub_group_block_read2((global const uint*)(from)));
    const float one = lane_float(from);
    global float* to = y + 2048 + 16 * id;
    to[0] = get_sub_group_local_id();
    to[1] = get_sub_group_id();
    to[2] = one;
    to[3] = two.x;
    to[4] = two.y;
    for (int i = 0; i < 4; ++i) to[5 + i] = four[i];
    to[9] = sub_group_broadcast(one, SG - 1);
    for (int i = 10; i < 16; ++i) to[i] = 0.0f;
}
