// SPDX-License-Identifier: MIT
// Work-group sizes for kernels that support any size: the default, and those that a tuner tries.
#pragma once

#include <dlprim/context.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace dlprim {

/// 256, or the device's limit if that is smaller.
inline std::int64_t usual_group(const Traits& device) {
    return static_cast<std::int64_t>(std::clamp<std::uint64_t>(device.max_work_group, 1, 256));
}

/// In ascending order; the last is usual_group().
inline std::vector<std::int64_t> group_sizes(const Traits& device) {
    std::vector<std::int64_t> sizes;
    for (const std::int64_t size : {64, 128})
        if (size < usual_group(device)) sizes.push_back(size);
    sizes.push_back(usual_group(device));
    return sizes;
}

}  // namespace dlprim
