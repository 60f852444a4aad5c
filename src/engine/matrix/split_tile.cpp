// SPDX-License-Identifier: MIT
// Products of floats as sums of halves: the numbers of tiles, their time, and the choice of tile
// rows and of a split-K factor.
#include "engine/matrix/split_tile.hpp"

#include "base/integers.hpp"
#include "engine/matrix/device_table.hpp"
#include "engine/matrix/model.hpp"

#include <algorithm>

namespace dlprim {

std::int64_t SplitSize::tiles_m(std::int64_t wm) const {
    return ceil_div(rows, 64 * wm);
}
std::int64_t SplitSize::tiles_n() const {
    return ceil_div(columns, split_columns);
}

std::int64_t most_split_rows(MatrixUnit unit, const Traits& device, int products,
                             std::int64_t stages, std::int64_t more) {
    const std::int64_t planes = products == 1 ? 1 : 2;
    for (std::int64_t wm = 2; wm > 0; --wm)
        if (stages * planes * (64 * wm + split_columns) * split_depth * 2 + more <=
            unit_local_bytes(unit, device))
            return wm;
    return 0;
}

std::int64_t planes_stages(MatrixUnit unit, const Traits& device, std::int64_t wm, int products,
                           std::int64_t stage_bytes, std::int64_t more) {
    std::int64_t stages = products == 1 ? 4 : wm == 2 ? 3 : 2;
    while (stages > 1 &&
           most_split_rows(unit, device, products, stages, stages * stage_bytes + more) < wm)
        --stages;
    return stages > 1 ? stages : 0;
}

Verdict split_rows_verdict(std::int64_t most) {
    return most > 0 ? Verdict::yes()
                    : Verdict::no("its tiles do not fit into the local memory of a work-group");
}

double split_seconds(const Traits& device, const SplitSize& size, std::int64_t wm,
                     std::int64_t splits) {
    TileSpeed speed;
    speed.step_seconds = (wm == 2 ? h200::split_steps.rows_128 : h200::split_steps.rows_64) *
                         size.pace / split_gain(size.products);
    // Two work-groups with tiles of 64 rows share a compute unit.
    speed.resident = speed.alone = wm == 2 ? 1 : 2;
    const double groups =
        static_cast<double>(size.tiles_m(wm) * size.tiles_n()) * static_cast<double>(splits);
    return tile_seconds(device, speed, groups, static_cast<double>(ceil_div(size.steps, splits)));
}

double split_parts_seconds(const Traits& device, const SplitSize& size, std::int64_t wm,
                           std::int64_t splits, double part_bytes) {
    return split_seconds(device, size, wm, splits) + parts_seconds(device, part_bytes, splits);
}

Tuning choose_split(const Traits& device, const SplitSize& size, double part_bytes,
                    double limit_bytes, std::int64_t only_wm) {
    std::vector<std::int64_t> wms;
    for (std::int64_t wm = 1; wm <= size.most_wm; ++wm)
        if (only_wm == 0 || wm == only_wm) wms.push_back(wm);
    const auto best =
        cheapest(wms.size(), {size.steps, 2, part_bytes, limit_bytes},
                 [&](std::size_t tile, std::int64_t splits) {
                     return split_parts_seconds(device, size, wms[tile], splits, part_bytes);
                 });
    if (!best) return {{"rows", split_rows}, {"splits", 1}};
    return {{"rows", split_rows * wms[best->tile]}, {"splits", best->splits}};
}

TuneSpace split_tune_space(const Tuning& standard) {
    const std::int64_t splits = standard.at("splits");
    TuneSpace space{{"rows", {standard.at("rows")}}, {"splits", {splits, splits * 2}}};
    if (splits > 1) space["splits"].push_back(ceil_div(splits, 2));
    return space;
}

Tuning choose_rows(std::int64_t most_wm, const PartsRange& range,
                   const std::function<double(std::int64_t wm, std::int64_t splits)>& seconds) {
    const auto best = cheapest(static_cast<std::size_t>(most_wm), range,
                               [&](std::size_t tile, std::int64_t splits) {
                                   return seconds(static_cast<std::int64_t>(tile) + 1, splits);
                               });
    if (!best) return {{"rows", split_rows}, {"splits", 1}};
    return {{"rows", split_rows * (static_cast<std::int64_t>(best->tile) + 1)},
            {"splits", best->splits}};
}

TuneSpace rows_tune_space(const Tuning& standard, std::int64_t most_wm) {
    TuneSpace space = split_tune_space(standard);
    space["rows"] = {split_rows};
    if (most_wm == 2) space["rows"].push_back(2 * split_rows);
    return space;
}

}  // namespace dlprim
