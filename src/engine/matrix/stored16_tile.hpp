// SPDX-License-Identifier: MIT
// Products of operands that are stored in 16 bits (half or bfloat16), by a matrix unit: what they
// take, their tiles, and the choice among these.
#pragma once

#include "engine/engine.hpp"
#include "engine/matrix/device_table.hpp"
#include "engine/matrix/unit.hpp"

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace dlprim {

/// K of a step, work-items of a work-group, rows of a block of packed weights.
constexpr std::int64_t stored16_depth = 64, stored16_items = 256, stored16_block = 64;

/// What kernels call a stored type: 0 float, 1 half, 2 bfloat16.
int stored16_kind(DType dtype);

/// Whether the problem's precision lets factors be rounded to that type.
bool stored16_precision(const Problem& problem, DType dtype);
/// No, with the reason, unless a work-group has that much local memory.
Verdict stored16_local_verdict(MatrixUnit unit, const Traits& device, std::int64_t bytes);
/// No, with the reason, unless all operands are float but those inputs, and with `output` the
/// output and what epilogues add, which may be half and bfloat16, too.
Verdict stored16_storage_verdict(const Problem& problem, std::initializer_list<int> inputs,
                                 bool output);

/// A work-group's tile, and how many work-groups of it a compute unit holds.
struct Stored16Tile {
    std::int64_t rows, columns;
    double tflops;  ///< of a whole H200, for the model
    int resident;
    std::int64_t most_stages;  ///< 2 or more, or it does not fit
    std::int64_t stage_bytes() const { return (rows + columns) * 128; }
    /// Its part of a tuning.
    Tuning named() const { return {{"rows", rows}, {"columns", columns}}; }
};
/// What stages of a tile share local memory with.
struct StageRoom {
    std::int64_t row_bytes = 0;  ///< for each row of the tile, beside the stages
    bool sums = false;           ///< in place of the stages, the sums of the whole tile must fit
    bool any_number = false;     ///< as many stages as fit, also beyond what the table says pays
};
/// The tiles of a table (engine/matrix/device_table.hpp) as they are on that unit: their speed, and
/// as many stages as the local memory of a work-group holds.
std::vector<Stored16Tile> stored16_tiles(std::span<const h200::TileRate> rates, MatrixUnit unit,
                                         const Traits& device, const StageRoom& room);
/// No, with the reason, unless one of them fits.
Verdict stored16_tiles_verdict(const std::vector<Stored16Tile>& tiles);
/// The product of one launch.
struct Stored16Size {
    std::int64_t rows, columns, steps;
};
/// Seconds of the multiplication with K in so many parts.
double stored16_seconds(const Traits& device, const Stored16Tile& tile, const Stored16Size& size,
                        std::int64_t splits);
/// Seconds of so many work-groups of a tile, of `steps` steps each.
double stored16_group_seconds(const Traits& device, const Stored16Tile& tile, double groups,
                              double steps);
/// The cheapest of the tiles by the model, "splits", "stages" and "near". Parts of
/// `part_bytes` each are written and read again, to `limit_bytes` in all.
Tuning choose_stored16(const Traits& device, const std::vector<Stored16Tile>& tiles,
                       const Stored16Size& size, double part_bytes, double limit_bytes, bool near);
/// Tiles that waste no more than half of what they compute, stages that fit, and parts around the
/// default's.
TuneSpace stored16_tune_space(const std::vector<Stored16Tile>& tiles, const Stored16Size& size,
                              const Tuning& standard, bool near);
/// The tuning's stages, or as many as the tile lets fit.
std::int64_t stored16_stages(const Stored16Tile& tile, const Tuning& tuning);

}  // namespace dlprim
