// SPDX-License-Identifier: MIT
// The model of products that work-groups make by tiles, with K in one part or several, and the
// search for the cheapest tile and number of parts. All engines of matrix products, of convolutions
// as well as of MatMul, choose by this search.
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
    double resident = 1;  ///< work-groups that share a compute unit and hide each other's waiting
    double alone = 1;     ///< rounds that count where no compute unit has two work-groups
    double lead = 3;      ///< steps whose time goes to the first reads and to the stores
};
/// Seconds of `groups` work-groups of `steps` steps each. They come in rounds of `resident` for
/// every compute unit.
double tile_seconds(const Traits& device, const TileSpeed& speed, double groups, double steps);

/// Seconds of writing `splits` parts of `part_bytes` each and adding them in a second launch, at
/// that share of the device's bandwidth; 0 for one part.
double parts_seconds(const Traits& device, double part_bytes, std::int64_t splits,
                     double share = 0.7);

/// The numbers of parts of K that a search tries.
struct PartsRange {
    enum class Growth {
        quarter,  ///< 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15 and so on
        twice     ///< 1, 2, 4, 8 and so on
    };
    std::int64_t depth;        ///< K
    std::int64_t least_depth;  ///< of one part of several, in the same unit
    double part_bytes;         ///< that one part writes
    double limit_bytes;        ///< that all parts may write
    std::int64_t fewest = 1, most = 512;
    Growth growth = Growth::quarter;
    double better = 0.999;  ///< a candidate must take less than this share of the best so far
};

struct TileAndParts {
    std::size_t tile;  ///< its place among those searched
    std::int64_t splits;
};
/// The cheapest of `tiles` tiles and numbers of parts by `seconds`, which is asked with a tile's
/// place and a number of parts. Of equal ones the first wins. Empty where there is no tile.
std::optional<TileAndParts> cheapest(
    std::size_t tiles, const PartsRange& range,
    const std::function<double(std::size_t tile, std::int64_t splits)>& seconds);

}  // namespace dlprim
