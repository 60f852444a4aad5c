// SPDX-License-Identifier: MIT
// Tiles of sub-groups.
#include "engine/subgroup.hpp"
#include "base/text.hpp"
#include "engine/matrix/named_tile.hpp"

#include <algorithm>
#include <array>

namespace dlprim {

namespace {

// With sub-groups of 16, the first tile has 32 sums per lane, which is half of the registers that
// an Intel GPU gives a sub-group.
constexpr std::array<SubgroupTile, 5> tiles{
    {{8, 4, 8}, {8, 4, 2}, {8, 2, 8}, {8, 2, 2}, {4, 1, 4}}};

}  // namespace

std::vector<SubgroupTile> subgroup_tiles(const Traits& device) {
    std::vector<SubgroupTile> fitting;
    for (const SubgroupTile& tile : tiles)
        if (static_cast<std::uint64_t>(tile.threads(device)) <= device.max_work_group)
            fitting.push_back(tile);
    return fitting;
}

SubgroupTile subgroup_tile(const Traits& device, const Tuning& tuning) {
    return named_tile(tiles, tuning, device);
}

Verdict subgroup_verdict(const Traits& device) {
    if (device.subgroup_size == 0)
        return Verdict::no(
            "it needs sub-groups whose size a kernel can require "
            "(cl_intel_subgroups, cl_intel_required_subgroup_size), which the device lacks");
    if (device.wide_vectors)
        return Verdict::no("it is made for GPUs; CPUs have engines that use vectors");
    if (subgroup_tiles(device).empty())
        return Verdict::no(cat("it needs work-groups of at least ", 2 * device.subgroup_size,
                               " work-items, and the device allows ", device.max_work_group));
    return Verdict::yes();
}

double subgroup_share(const Traits& device, const SubgroupTile& tile, bool gathered) {
    // Both operands are read from the cache in each step of K. According to documentation, such
    // devices read 64 bytes per cycle from it and do 256 operations. This was not measured, for
    // lack of a device.
    const double lanes = device.subgroup_size;
    const double operations = 2.0 * tile.rows * tile.strips * lanes;
    const double bytes = 4.0 * (tile.rows + tile.strips * lanes);
    return 0.75 * std::min(1.0, operations / bytes / 4.0) * (gathered ? 0.5 : 1.0);
}

std::vector<std::pair<std::string_view, std::int64_t>> subgroup_defines(const Traits& device,
                                                                        const SubgroupTile& tile) {
    return {{"SG", device.subgroup_size},
            {"TM", tile.rows},
            {"TN", tile.strips},
            {"GROUPS", tile.groups}};
}

}  // namespace dlprim
