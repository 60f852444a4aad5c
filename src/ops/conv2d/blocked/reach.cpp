// SPDX-License-Identifier: MIT
// Ranges of input channels by slab of output blocks.
#include "ops/conv2d/blocked/reach.hpp"

#include "base/integers.hpp"

#include <algorithm>

namespace dlprim::conv2d {

double Reach::passes() const {
    if (!across) return static_cast<double>(slabs) / static_cast<double>(groups);
    return static_cast<double>(all_lanes) / static_cast<double>(group_in);
}

Reach reach_of(const Traits& device, std::int64_t groups, std::int64_t group_in,
               std::int64_t group_out, int vectors, std::int64_t unit, int lanes) {
    const int v = device.vector_width;
    Reach reach{};
    reach.across = reaches_across(device, groups, group_in, group_out);
    reach.groups = reach.across ? 1 : groups;
    reach.group_in = group_in * groups / reach.groups;
    reach.group_out = group_out * groups / reach.groups;
    reach.in_blocks = ceil_div(reach.group_in, v);
    reach.out_vectors = ceil_div(reach.group_out, lanes);
    const std::int64_t group_slabs = ceil_div(reach.out_vectors, vectors);
    reach.slabs = reach.groups * group_slabs;
    if (!reach.across) {
        reach.most_lanes = reach.in_blocks * v;
        reach.all_lanes = reach.slabs * reach.most_lanes;
        return reach;
    }
    const std::int64_t slab_out = std::int64_t(vectors) * lanes;
    for (std::int64_t slab = 0; slab < group_slabs; ++slab) {
        const std::int64_t last_out = std::min((slab + 1) * slab_out, reach.group_out) - 1;
        const std::int64_t first = slab * slab_out / group_out * group_in / unit * unit;
        const std::int64_t end = ceil_div((last_out / group_out + 1) * group_in, unit) * unit;
        reach.most_lanes = std::max(reach.most_lanes, end - first);
        reach.all_lanes += end - first;
    }
    return reach;
}

bool reaches_across(const Traits& device, std::int64_t groups, std::int64_t group_in,
                    std::int64_t group_out) {
    const int v = device.vector_width;
    return groups > 1 && (group_in % v != 0 || group_out % v != 0);
}

int group_lanes(const Traits& device, std::int64_t groups, std::int64_t group_in,
                std::int64_t group_out) {
    const int v = device.vector_width, half = v / 2;
    if (v != 16 || !reaches_across(device, groups, group_in, group_out)) return v;
    if (group_in % half != 0 || group_out % half != 0) return v;
    const std::int64_t products =
        v * reach_of(device, groups, group_in, group_out, 1, 4, v).all_lanes;
    return 10 * products >= 11 * groups * group_in * group_out ? half : v;
}

}  // namespace dlprim::conv2d
