// SPDX-License-Identifier: MIT
// Products of floats on any GPU (kernels/matrix/float_tile.clh). Each work-group computes a tile
// from local memory. This file has the tiles, and a model that estimates their speed from the
// device's peak.
#pragma once

#include "engine/engine.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace dlprim {

/// What the model knows about a work-group's tile.
struct TileShape {
    std::int64_t rows, columns, threads;
    double share;  ///< the largest share of the device's peak that it reaches
    /// The properties by which a tuning names this tile.
    Tuning named() const { return {{"rows", rows}, {"columns", columns}, {"threads", threads}}; }
};

/// The shape of a work-group's tile in local memory.
struct GemmTile {
    int tx, ty, gm, gn;
    /// The largest share of the device's peak that it reaches, for the model.
    double share;
    std::int64_t bm() const { return 4 * gm * ty; }
    std::int64_t bn() const { return 4 * gn * tx; }
    std::int64_t threads() const { return tx * ty; }
    TileShape shape() const { return {bm(), bn(), threads(), share}; }
    Tuning named() const { return shape().named(); }
};

/// Whether a work-item with `down` x `across` blocks of 4 x 4 sums has enough registers on the
/// device (Traits::item_registers). The smallest tile is one of 1 x 1 blocks, and always has.
bool tile_registers_fit(const Traits& device, int down, int across);
/// How many steps of K a tile's loop unrolls, so that it keeps to these registers; 0: all of them.
int tile_unrolled_steps(const Traits& device);

/// The part of K that is in local memory at a time.
constexpr std::int64_t gemm_depth = 8;

/// Returns the tile that a tuning names.
GemmTile gemm_tile(const Tuning& tuning);
/// Returns the compiler options of a tile: "-DTX=16 ...".
std::string gemm_tile_options(const Traits& device, const GemmTile& tile);
/// Returns yes if the smallest tile fits the device; else no, with the reason.
Verdict gemm_tile_verdict(const Traits& device);

/// The size of a product, as engines see it: rows x columns x depth, computed `batches` times (once
/// for each group of a convolution).
struct GemmSize {
    std::int64_t rows, columns, depth, batches;
};
/// Seconds of the multiplication alone, with K in `splits` parts. The model counts rounds of
/// work-groups over the compute units.
double gemm_seconds(const Traits& device, const TileShape& tile, const GemmSize& size,
                    std::int64_t splits);

/// Tiles to choose from, the largest first.
using TileChoice = std::vector<TileShape>;
/// Returns the tiles in local memory that fit the device.
TileChoice gemm_tiles(const Traits& device);

/// Returns the tile and the split-K factor ("splits") that are cheapest by the model. If K is
/// divided, each part has at least `least_depth` of K. A part has at most `most_depth` of K, which
/// keeps its sum precise. Each part writes `part_bytes`, which are read again. All
/// parts together write at most `limit_bytes` where `most_depth` allows that.
Tuning choose_gemm(const Traits& device, const TileChoice& tiles, const GemmSize& size,
                   std::int64_t least_depth, std::int64_t most_depth, double part_bytes,
                   double limit_bytes);
/// Seconds of the multiplication, and of writing and adding the parts.
double split_gemm_seconds(const Traits& device, const TileShape& tile, const GemmSize& size,
                          std::int64_t splits, double part_bytes);
/// Returns all the tiles, and numbers of parts around the default's.
TuneSpace gemm_tune_space(const TileChoice& tiles, const Tuning& standard);

}  // namespace dlprim
