// SPDX-License-Identifier: MIT
// Products of floats as sums of halves on a matrix unit (kernels/matrix/split_tile.clh). Tiles have
// 64 or 128 rows and 128 columns. This file has the model of their speed and the choice between
// them.
#pragma once

#include "engine/engine.hpp"
#include "engine/matrix/model.hpp"
#include "engine/matrix/split_products.hpp"
#include "engine/matrix/unit.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace dlprim {

/// Columns of a work-group's tile, work-items per work-group, and K per step.
constexpr std::int64_t split_columns = 128, split_items = 256, split_depth = 64;

/// Rows per warpgroup. A tile has `wm` times as many.
constexpr std::int64_t split_rows = 64;
/// Returns `wm` for a tuning, which names "rows".
inline std::int64_t wm_of(const Tuning& tuning) {
    return tuning.at("rows") / split_rows;
}

/// Returns the largest `wm` (2 or 1, for tiles of 128 or 64 rows) for which `stages` stages and
/// `more` bytes fit into a work-group's local memory. Returns 0 if neither fits.
std::int64_t most_split_rows(MatrixUnit unit, const Traits& device, int products,
                             std::int64_t stages, std::int64_t more);
/// The stages of kernels/matrix/planes_pipeline.clh: as many as a compute unit can hold with one
/// work-group of 128 rows or two of 64 rows, or fewer if a work-group may not have so much local
/// memory: a stage has `stage_bytes` besides its operands, and behind all of them are `more` bytes.
/// Returns 0 if two stages do not fit.
std::int64_t planes_stages(MatrixUnit unit, const Traits& device, std::int64_t wm, int products,
                           std::int64_t stage_bytes, std::int64_t more = 0);
/// Returns yes if `most` (of most_split_rows) is not 0; else no, with the reason.
Verdict split_rows_verdict(std::int64_t most);

/// The size of one launch's product.
struct SplitSize {
    std::int64_t rows, columns, steps;
    int products;  ///< of halves: see engine/matrix/split_products.hpp
    /// The engine's time per step, divided by the time with weights that are split beforehand.
    double pace = 1;
    std::int64_t most_wm = 2;  ///< the largest `wm` that fits into local memory
    std::int64_t tiles_m(std::int64_t wm) const;
    std::int64_t tiles_n() const;
};
/// Seconds of the multiplication, with tiles of 64 * wm rows and K in `splits` parts.
double split_seconds(const Traits& device, const SplitSize& size, std::int64_t wm,
                     std::int64_t splits);
/// The same, with writing and adding parts of `part_bytes` each.
double split_parts_seconds(const Traits& device, const SplitSize& size, std::int64_t wm,
                           std::int64_t splits, double part_bytes);
/// Returns {"rows", "splits"}, the cheapest by the model. If `only_wm` is not 0, tiles have that
/// `wm`.
Tuning choose_split(const Traits& device, const SplitSize& size, double part_bytes,
                    double limit_bytes, std::int64_t only_wm = 0);
TuneSpace split_tune_space(const Tuning& standard);

/// For engines whose operands lie in memory alike for every tile: the same, of `seconds` of tiles
/// of 64 * wm rows, wm from 1 to `most_wm`, with K in `splits` parts of `range`.
Tuning choose_rows(std::int64_t most_wm, const PartsRange& range,
                   const std::function<double(std::int64_t wm, std::int64_t splits)>& seconds);
TuneSpace rows_tune_space(const Tuning& standard, std::int64_t most_wm);

}  // namespace dlprim
