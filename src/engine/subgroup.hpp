// SPDX-License-Identifier: MIT
// Matrix products by sub-groups, which share values without local memory: their tiles, their
// requirements, and a model of their speed. The OpenCL side is kernels/common/subgroup.clh.
#pragma once

#include "engine/engine.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

/// The tile of a work-group: `groups` sub-groups one below the other. Each computes `rows` rows and
/// `strips` columns per lane.
struct SubgroupTile {
    int rows, strips, groups;
    std::int64_t bm() const { return static_cast<std::int64_t>(rows) * groups; }
    std::int64_t bn(const Traits& device) const {
        return static_cast<std::int64_t>(strips) * device.subgroup_size;
    }
    std::int64_t threads(const Traits& device) const {
        return static_cast<std::int64_t>(groups) * device.subgroup_size;
    }
    /// The part of a tuning that this tile sets.
    Tuning named(const Traits& device) const {
        return {{"rows", bm()}, {"columns", bn(device)}, {"threads", threads(device)}};
    }
};

/// The tiles that fit the device, the largest first.
std::vector<SubgroupTile> subgroup_tiles(const Traits& device);
/// The tile that a tuning names.
SubgroupTile subgroup_tile(const Traits& device, const Tuning& tuning);

/// No, with the reason, unless kernels can require sub-group sizes and a tile fits.
Verdict subgroup_verdict(const Traits& device);

/// The share of the device's peak that a tile reaches when the device is fully used. `gathered`:
/// each lane reads the values of its columns from unrelated addresses.
double subgroup_share(const Traits& device, const SubgroupTile& tile, bool gathered);

/// SG, TM, TN, GROUPS: the defines that common/subgroup.clh needs.
std::vector<std::pair<std::string_view, std::int64_t>> subgroup_defines(const Traits& device,
                                                                        const SubgroupTile& tile);

}  // namespace dlprim
