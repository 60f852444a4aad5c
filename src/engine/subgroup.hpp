// SPDX-License-Identifier: MIT
// Matrix products by sub-groups that share values without local memory: their tiles, what rules
// them in, and the model of their speed. kernels/common/subgroup.clh has the OpenCL side.
#pragma once

#include "engine/engine.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

/// What a work-group makes: `groups` sub-groups below each other, each with `rows` rows and
/// `strips` columns a lane.
struct SubgroupTile {
    int rows, strips, groups;
    std::int64_t bm() const { return static_cast<std::int64_t>(rows) * groups; }
    std::int64_t bn(const Traits& device) const {
        return static_cast<std::int64_t>(strips) * device.subgroup_size;
    }
    std::int64_t threads(const Traits& device) const {
        return static_cast<std::int64_t>(groups) * device.subgroup_size;
    }
    /// Its part of a tuning.
    Tuning named(const Traits& device) const {
        return {{"rows", bm()}, {"columns", bn(device)}, {"threads", threads(device)}};
    }
};

/// Those that fit the device, the largest first.
std::vector<SubgroupTile> subgroup_tiles(const Traits& device);
/// The one that a tuning names.
SubgroupTile subgroup_tile(const Traits& device, const Tuning& tuning);

/// No, with the reason, unless kernels may ask for sub-groups and a tile fits.
Verdict subgroup_verdict(const Traits& device);

/// Share of the device's peak that a tile reaches when the device is full, for the model.
/// `gathered`: lanes read their column's values each from a place of its own.
double subgroup_share(const Traits& device, const SubgroupTile& tile, bool gathered);

/// SG, TM, TN, GROUPS: what common/subgroup.clh asks for.
std::vector<std::pair<std::string_view, std::int64_t>> subgroup_defines(const Traits& device,
                                                                        const SubgroupTile& tile);
constexpr const char* subgroup_source = "common/subgroup.clh";

}  // namespace dlprim
