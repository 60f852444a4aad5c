// SPDX-License-Identifier: MIT
// Products of operands that are stored in 16 bits (half or bfloat16) on a matrix unit: what they
// support, their tiles, and the choice between the tiles.
#pragma once

#include "engine/engine.hpp"
#include "engine/matrix/device_table.hpp"
#include "engine/matrix/unit.hpp"

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace dlprim {

/// K per step, work-items per work-group, and rows per block of packed weights.
constexpr std::int64_t stored16_depth = 64, stored16_items = 256, stored16_block = 64;

/// Returns the number that kernels use for a storage type: 0 float, 1 half, 2 bfloat16.
int stored16_kind(DType dtype);

/// Whether the problem's precision allows rounding the factors to that type.
bool stored16_precision(const Problem& problem, DType dtype);
/// Returns yes if a work-group can have that much local memory; else no, with the reason.
Verdict stored16_local_verdict(MatrixUnit unit, const Traits& device, std::int64_t bytes);
/// Returns yes if every operand is stored in a type that the kernels support; else no, with the
/// reason. All operands may be float. The inputs listed may also be half or bfloat16. With
/// `output`, this also holds for the output and for what epilogues add.
Verdict stored16_storage_verdict(const Problem& problem, std::initializer_list<int> inputs,
                                 bool output);

/// A work-group's tile. `resident` is the number of work-groups that share a compute unit.
struct Stored16Tile {
    std::int64_t rows, columns;
    double tflops;  ///< of a whole H200, for the model
    int resident;
    std::int64_t most_stages;  ///< the tile fits the device if this is at least 2
    std::int64_t stage_bytes() const { return (rows + columns) * 128; }
    /// The properties by which a tuning names this tile.
    Tuning named() const { return {{"rows", rows}, {"columns", columns}}; }
};
/// What else needs local memory beside a tile's stages.
struct StageRoom {
    std::int64_t row_bytes = 0;  ///< for each row of the tile, beside the stages
    bool sums = false;           ///< the sums of the whole tile must fit in place of the stages
    bool any_number = false;     ///< allow all stages that fit, even more than the table's number
};
/// Returns a table's tiles (engine/matrix/device_table.hpp) for a matrix unit and a device: with
/// their speed, and with as many stages as fit into a work-group's local memory.
std::vector<Stored16Tile> stored16_tiles(std::span<const h200::TileRate> rates, MatrixUnit unit,
                                         const Traits& device, const StageRoom& room);
/// Returns yes if at least one of the tiles fits; else no, with the reason.
Verdict stored16_tiles_verdict(const std::vector<Stored16Tile>& tiles);
/// The size of one launch's product.
struct Stored16Size {
    std::int64_t rows, columns, steps;
};
/// Seconds of the multiplication with K in `splits` parts.
double stored16_seconds(const Traits& device, const Stored16Tile& tile, const Stored16Size& size,
                        std::int64_t splits);
/// Seconds of `groups` work-groups with this tile, of `steps` steps each.
double stored16_group_seconds(const Traits& device, const Stored16Tile& tile, double groups,
                              double steps);
/// Returns the cheapest tile by the model, with "splits", "stages" and "near". Each part writes
/// `part_bytes`, which are read again. All parts together write at most `limit_bytes`.
Tuning choose_stored16(const Traits& device, const std::vector<Stored16Tile>& tiles,
                       const Stored16Size& size, double part_bytes, double limit_bytes, bool near);
/// Returns the tiles that fit and compute at most 1.5 times as many elements as the one that
/// computes fewest, numbers of stages, and numbers of parts around the default's.
TuneSpace stored16_tune_space(const std::vector<Stored16Tile>& tiles, const Stored16Size& size,
                              const Tuning& standard, bool near);
/// Returns the tuning's number of stages, limited to what fits with this tile.
std::int64_t stored16_stages(const Stored16Tile& tile, const Tuning& tuning);

}  // namespace dlprim
