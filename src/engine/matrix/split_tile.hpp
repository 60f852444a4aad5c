// SPDX-License-Identifier: MIT
// Products of floats from halves on a matrix unit (kernels/matrix/split_tile.clh): tiles of 64 or
// 128 rows and 128 columns, the model of their speed, and the choice among them.
#pragma once

#include "engine/engine.hpp"
#include "engine/matrix/split_products.hpp"
#include "engine/matrix/unit.hpp"

#include <cstdint>
#include <vector>

namespace dlprim {

/// Columns of a work-group's tile, work-items of a work-group, K of a step.
constexpr std::int64_t split_columns = 128, split_items = 256, split_depth = 64;

/// Rows of a warpgroup: tiles have `wm` times as many.
constexpr std::int64_t split_rows = 64;
/// The `wm` of a tuning, which names "rows".
inline std::int64_t wm_of(const Tuning& tuning) {
    return tuning.at("rows") / split_rows;
}

/// Tiles have 64 or 128 rows: 1 or 2, as far as a work-group's local memory holds `stages` of them
/// and `more` bytes, else 0.
std::int64_t most_split_rows(MatrixUnit unit, const Traits& device, int products,
                             std::int64_t stages, std::int64_t more);
/// No, with the reason, where that is 0.
Verdict split_rows_verdict(std::int64_t most);

/// The product of one launch.
struct SplitSize {
    std::int64_t rows, columns, steps;
    int products;              ///< of halves: see engine/matrix/split_products.hpp
    double pace = 1;           ///< a step's time by the engine, over that with weights at hand
    std::int64_t most_wm = 2;  ///< of which there is local memory for tiles
    std::int64_t tiles_m(std::int64_t wm) const;
    std::int64_t tiles_n() const;
};
/// The one with most work; `sizes` is not empty.
SplitSize most_work(const std::vector<SplitSize>& sizes);
/// Seconds of the multiplication, with 64 * wm rows a tile and K in so many parts.
double split_seconds(const Traits& device, const SplitSize& size, std::int64_t wm,
                     std::int64_t splits);
/// With writing and adding parts of `part_bytes` each.
double split_parts_seconds(const Traits& device, const SplitSize& size, std::int64_t wm,
                           std::int64_t splits, double part_bytes);
/// {"rows", "splits"}: the cheapest by the model, with `only_wm` unless that is 0.
Tuning choose_split(const Traits& device, const SplitSize& size, double part_bytes,
                    double limit_bytes, std::int64_t only_wm = 0);
TuneSpace split_tune_space(const Tuning& standard);

}  // namespace dlprim
