// SPDX-License-Identifier: MIT
// Reorder: the tile that a GPU's work-group moves through local memory.
#pragma once

#include "ops/reorder/sides.hpp"

#include <dlprim/context.hpp>

#include <cstdint>

namespace dlprim::reorder {

/// CHANNELS, PIXELS, PITCH and GROUP of kernels/reorder/generic.cl; all are 0 where there is no
/// tile.
struct Tile {
    std::int64_t channels = 0, pixels = 0, pitch = 0, group = 0;
    explicit operator bool() const { return group > 0; }
};

/// The tile that suits `problem`. It is empty where reorder_rows serves instead: on CPUs, and where
/// local memory or work-groups are too small for tiles.
Tile tile_of(const Traits& device, const Problem& problem);

}  // namespace dlprim::reorder
