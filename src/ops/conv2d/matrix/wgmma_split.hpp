// SPDX-License-Identifier: MIT
// What the wgmma_split and mma_split engines share: which problems they take, and the model of
// their speed.
//
// They compute in float, or in tf32, by products of halves on one of NVIDIA's matrix units
// (kernels/common/split_half.clh, kernels/common/matrix_unit.clh).
#pragma once

#include "engine/engine.hpp"
#include "engine/matrix_unit.hpp"

#include <initializer_list>
#include <vector>

namespace dlprim::conv2d {

/// Columns of a work-group's tile, work-items of a work-group, K of a step.
constexpr std::int64_t wgmma_columns = 128, wgmma_items = 256, wgmma_depth = 64;

/// No, with the reason, unless the device has the unit, for `types` (unit_verdict), and the problem
/// one group, sizes that 32 bits count and a kernel within 15 x 15.
Verdict wgmma_split_verdict(MatrixUnit unit, const Traits& device, const Problem& problem,
                            std::initializer_list<DType> types = {DType::f16});

/// Rows of a warpgroup: tiles have `wm` times as many.
constexpr std::int64_t wgmma_rows = 64;
/// The `wm` of a tuning, which names "rows".
inline std::int64_t wm_of(const Tuning& tuning) {
    return tuning.at("rows") / wgmma_rows;
}

/// Tiles have 64 or 128 rows: 1 or 2, as far as a work-group's local memory holds `stages` of them
/// and `more` bytes, else 0.
std::int64_t most_wgmma_rows(MatrixUnit unit, const Traits& device, int products,
                             std::int64_t stages, std::int64_t more);
/// No, with the reason, where that is 0.
Verdict wgmma_rows_verdict(std::int64_t most);

/// The product of one launch.
struct WgmmaSize {
    std::int64_t rows, columns, steps;
    int products;              ///< of halves: see engine/split_products.hpp
    double pace = 1;           ///< a step's time by the engine, over wgmma_split's
    std::int64_t most_wm = 2;  ///< of which there is local memory for tiles
    std::int64_t tiles_m(std::int64_t wm) const;
    std::int64_t tiles_n() const;
};
/// The one with most work; `sizes` is not empty.
WgmmaSize most_work(const std::vector<WgmmaSize>& sizes);
/// Seconds of the multiplication, with 64 * wm rows a tile and K in so many parts.
double wgmma_seconds(const Traits& device, const WgmmaSize& size, std::int64_t wm,
                     std::int64_t splits);
/// With writing and adding parts of `part_bytes` each.
double wgmma_split_seconds(const Traits& device, const WgmmaSize& size, std::int64_t wm,
                           std::int64_t splits, double part_bytes);
/// {"rows", "splits"}: the cheapest by the model, with `only_wm` unless that is 0.
Tuning choose_wgmma(const Traits& device, const WgmmaSize& size, double part_bytes,
                    double limit_bytes, std::int64_t only_wm = 0);
TuneSpace wgmma_tune_space(const Tuning& standard);

}  // namespace dlprim::conv2d
