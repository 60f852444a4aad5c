// SPDX-License-Identifier: MIT
// Sizes of work-group for kernels that run in any: what is usual, and what a tuner tries.
#pragma once

#include <dlprim/context.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace dlprim {

/// 256, or what the device takes.
inline std::int64_t usual_group(const Traits& device) {
    return static_cast<std::int64_t>(std::clamp<std::uint64_t>(device.max_work_group, 1, 256));
}

/// Ascending; the last is usual_group().
inline std::vector<std::int64_t> group_sizes(const Traits& device) {
    std::vector<std::int64_t> sizes;
    for (const std::int64_t size : {64, 128})
        if (size < usual_group(device)) sizes.push_back(size);
    sizes.push_back(usual_group(device));
    return sizes;
}

}  // namespace dlprim
