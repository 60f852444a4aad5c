// SPDX-License-Identifier: MIT
// The model of products that work-groups compute by tiles, with K in one or several parts, and the
// search for the cheapest tile and number of parts. All engines of matrix products choose by this
// search, for convolutions as well as for MatMul.
#pragma once

#include "engine/engine.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace dlprim {

/// What a tile costs.
struct TileSpeed {
    double step_seconds;  ///< of one work-group, for 64 of K
    /// Work-groups that share a compute unit and hide each other's latency.
    double resident = 1;
    /// The number of rounds that count if no compute unit has two work-groups.
    double alone = 1;
    double lead = 3;  ///< the first reads and the stores take as long as so many steps
};
/// Seconds of `groups` work-groups that take `steps` steps each. They run in rounds of `resident`
/// work-groups per compute unit.
double tile_seconds(const Traits& device, const TileSpeed& speed, double groups, double steps);

/// Seconds of writing `splits` parts of `part_bytes` each, and of adding them in a second launch.
/// `share` is the share of the device's bandwidth that this reaches. Returns 0 for one part.
double parts_seconds(const Traits& device, double part_bytes, std::int64_t splits,
                     double share = 0.7);

/// The split-K factors that a search tries: into how many parts K is divided.
struct PartsRange {
    enum class Growth {
        quarter,  ///< 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15 and so on
        twice     ///< 1, 2, 4, 8 and so on
    };
    std::int64_t depth;        ///< K
    std::int64_t least_depth;  ///< the least K of a part, if there are several
    double part_bytes;         ///< bytes that each part writes
    double limit_bytes;        ///< bytes that all parts may write together
    std::int64_t fewest = 1, most = 512;
    Growth growth = Growth::quarter;
    double better = 0.999;  ///< a candidate must take less than this share of the best so far
};

struct TileAndParts {
    std::size_t tile;  ///< its index among the tiles of the search
    std::int64_t splits;
};
/// Searches `tiles` tiles, each with several numbers of parts, for the cheapest. `seconds`
/// estimates a candidate from the tile's index and the number of parts. The first of equal
/// candidates wins. Returns nothing if there is no tile.
std::optional<TileAndParts> cheapest(
    std::size_t tiles, const PartsRange& range,
    const std::function<double(std::size_t tile, std::int64_t splits)>& seconds);

}  // namespace dlprim
