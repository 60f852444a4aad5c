// SPDX-License-Identifier: MIT
// Reorder: the tile that a work-group of a GPU moves through local memory.
#pragma once

#include "ops/reorder/sides.hpp"

#include <dlprim/context.hpp>

#include <cstdint>

namespace dlprim::reorder {

/// CHANNELS, PIXELS, PITCH and GROUP of kernels/reorder/generic.cl. All are 0 if there is no tile.
struct Tile {
    std::int64_t channels = 0, pixels = 0, pitch = 0, group = 0;
    explicit operator bool() const { return group > 0; }
};

/// The best tile for `problem`. It is empty if reorder_rows must be used: on CPUs, and if local
/// memory or work-groups are too small for tiles.
Tile tile_of(const Traits& device, const Problem& problem);

}  // namespace dlprim::reorder
