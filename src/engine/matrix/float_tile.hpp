// SPDX-License-Identifier: MIT
// Products of floats by work-groups' tiles in local memory, on any GPU
// (kernels/matrix/float_tile.clh): the tiles, and the model of their speed by the device's peak.
#pragma once

#include "engine/engine.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace dlprim {

/// What the model knows of a work-group's tile.
struct TileShape {
    std::int64_t rows, columns, threads;
    double share;  ///< of the device's peak that it reaches at best
    /// Its part of a tuning.
    Tuning named() const { return {{"rows", rows}, {"columns", columns}, {"threads", threads}}; }
};

/// One shape of a work-group's tile in local memory.
struct GemmTile {
    int tx, ty, gm, gn;
    double share;  ///< of the device's peak that it reaches at best, for the model
    std::int64_t bm() const { return 4 * gm * ty; }
    std::int64_t bn() const { return 4 * gn * tx; }
    std::int64_t threads() const { return tx * ty; }
    TileShape shape() const { return {bm(), bn(), threads(), share}; }
    Tuning named() const { return shape().named(); }
};

/// Steps of K that lie in local memory at a time.
constexpr std::int64_t gemm_depth = 8;

/// The one that a tuning names.
GemmTile gemm_tile(const Tuning& tuning);
/// "-DTX=16 ...".
std::string gemm_tile_options(const GemmTile& tile);
/// No, with the reason, unless the smallest tile fits the device.
Verdict gemm_tile_verdict(const Traits& device);

/// The product of a tile's size, as engines see it: rows x columns x depth, `batches` times (groups
/// of a convolution), in parts of K.
struct GemmSize {
    std::int64_t rows, columns, depth, batches;
};
/// Seconds of the multiplication alone, by whole rounds of work-groups over the compute units.
double gemm_seconds(const Traits& device, const TileShape& tile, const GemmSize& size,
                    std::int64_t splits);

/// Tiles to choose from, the largest first.
using TileChoice = std::vector<TileShape>;
/// Those in local memory that fit the device.
TileChoice gemm_tiles(const Traits& device);

/// The cheapest tile and number of parts, "splits", by the model. A part has at least
/// `least_depth` steps of K and at most `most_depth` (the precision of its sum); parts of
/// `part_bytes` each are written and read again, to `limit_bytes` in all where that is possible.
Tuning choose_gemm(const Traits& device, const TileChoice& tiles, const GemmSize& size,
                   std::int64_t least_depth, std::int64_t most_depth, double part_bytes,
                   double limit_bytes);
/// Seconds with writing and adding the parts.
double split_gemm_seconds(const Traits& device, const TileShape& tile, const GemmSize& size,
                          std::int64_t splits, double part_bytes);
/// The tiles, and parts around the default's.
TuneSpace gemm_tune_space(const TileChoice& tiles, const Tuning& standard);

}  // namespace dlprim
