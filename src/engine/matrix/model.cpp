// SPDX-License-Identifier: MIT
// The model of products by tiles: the time of the tiles, the time to add the parts of
// split-K, and the search for the cheapest tile and split-K factor.
#include "engine/matrix/model.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim {

double tile_seconds(const Traits& device, const TileSpeed& speed, double groups, double steps) {
    const double each = groups / std::max(device.compute_units, 1);
    const double rounds =
        each <= 1 ? speed.alone : std::ceil(each / speed.resident) * speed.resident;
    return rounds * speed.step_seconds * (steps + speed.lead);
}

double parts_seconds(const Traits& device, double part_bytes, std::int64_t splits, double share) {
    if (splits <= 1) return 0;
    return 2.0 * part_bytes * static_cast<double>(splits) /
               (std::max(device.gbytes_per_s, 1.0) * (share * 1e9)) +
           device.launch_us * 1e-6;
}

std::optional<TileAndParts> cheapest(
    std::size_t tiles, const PartsRange& range,
    const std::function<double(std::size_t tile, std::int64_t splits)>& seconds) {
    std::optional<TileAndParts> best;
    double best_seconds = 1e300;
    for (std::size_t tile = 0; tile < tiles; ++tile) {
        for (std::int64_t splits = range.fewest; splits <= range.most;
             splits += range.growth == PartsRange::Growth::twice
                           ? splits
                           : std::max<std::int64_t>(1, splits / 4)) {
            if (splits > range.fewest &&
                (range.depth / splits < range.least_depth ||
                 range.part_bytes * static_cast<double>(splits) > range.limit_bytes))
                break;
            const double candidate = seconds(tile, splits);
            if (candidate >= best_seconds * range.better) continue;
            best_seconds = candidate;
            best = {tile, splits};
        }
    }
    return best;
}

}  // namespace dlprim
