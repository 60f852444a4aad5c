// SPDX-License-Identifier: MIT
// Products in 16 bits: verdicts, the tiles that fit into local memory, their time, and the choice.
#include "engine/matrix/stored16_tile.hpp"

#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/matrix/model.hpp"
#include "engine/matrix/named_tile.hpp"

#include <algorithm>
#include <limits>

namespace dlprim {

int stored16_kind(DType dtype) {
    return dtype == DType::f16 ? 1 : dtype == DType::bf16 ? 2 : 0;
}

bool stored16_precision(const Problem& problem, DType dtype) {
    return problem.precision == Precision::bf16 ||
           (dtype == DType::f16 && problem.precision != Precision::fp32);
}

Verdict stored16_local_verdict(MatrixUnit unit, const Traits& device, std::int64_t bytes) {
    return bytes <= unit_local_bytes(unit, device)
               ? Verdict::yes()
               : Verdict::no(cat("it needs ", bytes,
                                 " bytes of local memory in a work-group, and the device allows ",
                                 unit_local_bytes(unit, device)));
}

std::vector<Stored16Tile> stored16_tiles(std::span<const h200::TileRate> rates, MatrixUnit unit,
                                         const Traits& device, const StageRoom& room) {
    std::vector<Stored16Tile> tiles;
    for (const h200::TileRate& rate : rates) {
        Stored16Tile tile{rate.rows, rate.columns, rate.tflops / unit_pace(unit), rate.resident, 0};
        const std::int64_t bytes = unit_local_bytes(unit, device) - room.row_bytes * tile.rows;
        tile.most_stages = std::max<std::int64_t>(bytes, 0) / tile.stage_bytes();
        if (!room.any_number) tile.most_stages = std::min(tile.most_stages, rate.stages);
        if (room.sums && tile.rows * (tile.columns + 8) * 4 > bytes) tile.most_stages = 0;
        tiles.push_back(tile);
    }
    return tiles;
}

Verdict stored16_tiles_verdict(const std::vector<Stored16Tile>& tiles) {
    for (const Stored16Tile& tile : tiles)
        if (tile.most_stages >= 2) return Verdict::yes();
    return Verdict::no("its tiles do not fit into the local memory of a work-group");
}

Verdict stored16_storage_verdict(const Problem& problem, std::initializer_list<int> inputs,
                                 bool output) {
    std::vector<bool> narrow(problem.inputs.size(), false);
    for (const int i : inputs) narrow[static_cast<std::size_t>(i)] = true;
    for (const EpilogueStage& stage : problem.epilogue)
        if (stage.kind == EpilogueStage::Kind::add && output)
            narrow[static_cast<std::size_t>(stage.operand)] = true;
    const auto takes = [](const Operand& operand, bool may_be_narrow) {
        return operand.dtype == DType::f32 || (may_be_narrow && stored16_kind(operand.dtype) != 0);
    };
    for (std::size_t i = 0; i < problem.inputs.size(); ++i)
        if (!takes(problem.inputs[i], narrow[i]))
            return Verdict::no(
                cat("it does not support ", name_of(problem.inputs[i].dtype), " as input ", i));
    if (!takes(problem.outputs[0], output))
        return Verdict::no(
            cat("it does not support ", name_of(problem.outputs[0].dtype), " as output"));
    return Verdict::yes();
}

double stored16_group_seconds(const Traits& device, const Stored16Tile& tile, double groups,
                              double steps) {
    TileSpeed speed;
    speed.step_seconds = 2.0 * static_cast<double>(tile.rows * tile.columns * stored16_depth) /
                         (tile.tflops * 1e12 / h200::compute_units);
    speed.resident = tile.resident;
    // Work-groups that share a compute unit hide each other's latency. A single one hides less of
    // it.
    speed.alone = 1 + 0.4 * (speed.resident - 1);
    return tile_seconds(device, speed, groups, steps);
}

double stored16_seconds(const Traits& device, const Stored16Tile& tile, const Stored16Size& size,
                        std::int64_t splits) {
    const double groups =
        static_cast<double>(ceil_div(size.rows, tile.rows) * ceil_div(size.columns, tile.columns)) *
        static_cast<double>(splits);
    return stored16_group_seconds(device, tile, groups,
                                  static_cast<double>(ceil_div(size.steps, splits)));
}

Tuning choose_stored16(const Traits& device, const std::vector<Stored16Tile>& tiles,
                       const Stored16Size& size, double part_bytes, double limit_bytes, bool near) {
    std::vector<Stored16Tile> fitting;
    for (const Stored16Tile& tile : tiles)
        if (tile.most_stages >= 2) fitting.push_back(tile);
    const auto best = cheapest(fitting.size(), {size.steps, 2, part_bytes, limit_bytes},
                               [&](std::size_t tile, std::int64_t splits) {
                                   return stored16_seconds(device, fitting[tile], size, splits) +
                                          parts_seconds(device, part_bytes, splits);
                               });
    if (!best) return {};
    const Stored16Tile& tile = fitting[best->tile];
    return with(tile.named(),
                {{"splits", best->splits}, {"stages", tile.resident > 1 ? 3 : 4}, {"near", near}});
}

TuneSpace stored16_tune_space(const std::vector<Stored16Tile>& tiles, const Stored16Size& size,
                              const Tuning& standard, bool near) {
    const std::int64_t splits = standard.at("splits");
    TuneSpace space{{"stages", {3, 4}}, {"splits", {splits}}, {"near", {0}}};
    if (near) space["near"].push_back(1);
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    const auto computed = [&](const Stored16Tile& tile) {
        return ceil_div(size.rows, tile.rows) * tile.rows * ceil_div(size.columns, tile.columns) *
               tile.columns;
    };
    for (const Stored16Tile& tile : tiles) {
        if (tile.most_stages < 2) continue;
        least = std::min(least, computed(tile));
        if (tile.most_stages > 4 && space["stages"].size() == 2) space["stages"].push_back(6);
    }
    for (const Stored16Tile& tile : tiles)
        if (tile.most_stages >= 2 && computed(tile) * 2 <= least * 3)
            space.tiles.push_back(tile.named());
    if (size.steps >= 8) space["splits"].push_back(splits * 2);
    if (splits > 1) space["splits"].push_back(ceil_div(splits, 2));
    return space;
}

std::int64_t stored16_stages(const Stored16Tile& tile, const Tuning& tuning) {
    return std::clamp<std::int64_t>(tuning.at("stages"),
                                    std::min<std::int64_t>(3, tile.most_stages), tile.most_stages);
}

}  // namespace dlprim
