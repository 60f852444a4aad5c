// SPDX-License-Identifier: MIT
// Products of floats on any GPU: the table of tiles, those that fit a device, their time, and the
// choice of a tile and a split-K factor.
#include "engine/matrix/float_tile.hpp"

#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "engine/matrix/model.hpp"
#include "engine/matrix/named_tile.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace dlprim {

namespace {

constexpr std::array<GemmTile, 7> tiles{{
    {16, 16, 2, 2, 0.85},  // 128 x 128
    {8, 16, 2, 2, 0.80},   // 128 x 64
    {16, 8, 2, 2, 0.80},   // 64 x 128
    {8, 8, 2, 2, 0.72},    // 64 x 64
    {16, 4, 2, 2, 0.62},   // 32 x 128
    {8, 8, 2, 1, 0.55},    // 64 x 32
    {8, 8, 1, 1, 0.40},    // 32 x 32
}};

std::uint64_t local_bytes(const GemmTile& tile) {
    return static_cast<std::uint64_t>(8 * gemm_depth * (tile.bm() + tile.bn() + 8));
}

bool gemm_tile_fits(const Traits& device, const GemmTile& tile) {
    return static_cast<std::uint64_t>(tile.threads()) <= device.max_work_group &&
           local_bytes(tile) <= device.local_bytes && tile_registers_fit(device, tile.gm, tile.gn);
}

}  // namespace

bool tile_registers_fit(const Traits& device, int down, int across) {
    // The sums, their operands in one step of K, and what addresses and the operands that travel to
    // the next step take: 28 registers in what LLVM makes of kernels/conv2d/implicit_gemm.cl
    // (docs/results/2026-11-29-offline.md).
    const int registers = 16 * down * across + 4 * (down + across) + 28;
    const bool smallest = down == 1 && across == 1;
    return device.item_registers == 0 || smallest || registers <= device.item_registers;
}

GemmTile gemm_tile(const Tuning& tuning) {
    return named_tile(tiles, tuning);
}

int tile_unrolled_steps(const Traits& device) {
    return device.item_registers > 0 ? 4 : 0;
}

std::string gemm_tile_options(const Traits& device, const GemmTile& tile) {
    const int steps = tile_unrolled_steps(device);
    return define("TX", tile.tx) + define("TY", tile.ty) + define("GM", tile.gm) +
           define("GN", tile.gn) + define("BK", gemm_depth) +
           (steps > 0 ? define("TILE_STEPS", steps) : "");
}

double gemm_seconds(const Traits& device, const TileShape& tile, const GemmSize& size,
                    std::int64_t splits) {
    const double units = std::max(device.compute_units, 1);
    const double groups = static_cast<double>(ceil_div(size.rows, tile.rows) *
                                              ceil_div(size.columns, tile.columns) * size.batches) *
                          static_cast<double>(splits);
    // Several work-groups share a compute unit and hide each other's latency. In the last round
    // there are fewer of them.
    const double resident = std::max(1.0, 512.0 / static_cast<double>(tile.threads));
    const double each = groups / units;
    const double rounds =
        each > 2 * resident ? each + 0.3 * resident : std::max(1.0, std::ceil(each));
    const double active =
        std::min(std::max(1.0, std::ceil(each)), resident) * static_cast<double>(tile.threads);
    const double hidden = active / (active + 48.0);
    // The first reads and the stores take as long as two steps.
    const double depth = static_cast<double>(ceil_div(size.depth, splits)) + 16.0;
    const double work = 2.0 * static_cast<double>(tile.rows * tile.columns) * depth;
    const double share = device.wide_vectors ? 0.02 : tile.share * hidden;
    return rounds * work / (std::max(device.gflops, 1.0) * 1e9 * share / units);
}

double split_gemm_seconds(const Traits& device, const TileShape& tile, const GemmSize& size,
                          std::int64_t splits, double part_bytes) {
    return gemm_seconds(device, tile, size, splits) + parts_seconds(device, part_bytes, splits);
}

TileChoice gemm_tiles(const Traits& device) {
    TileChoice fitting;
    for (const GemmTile& tile : tiles)
        if (gemm_tile_fits(device, tile)) fitting.push_back(tile.shape());
    return fitting;
}

Tuning choose_gemm(const Traits& device, const TileChoice& tiles, const GemmSize& size,
                   std::int64_t least_depth, std::int64_t most_depth, double part_bytes,
                   double limit_bytes) {
    PartsRange range{size.depth, least_depth, part_bytes, limit_bytes};
    range.fewest = std::max<std::int64_t>(1, ceil_div(size.depth, most_depth));
    range.most = 4096;
    const auto best = cheapest(tiles.size(), range, [&](std::size_t tile, std::int64_t splits) {
        return split_gemm_seconds(device, tiles[tile], size, splits, part_bytes);
    });
    return best ? with(tiles[best->tile].named(), {{"splits", best->splits}})
                : with(tiles.back().named(), {{"splits", 1}});
}

TuneSpace gemm_tune_space(const TileChoice& tiles, const Tuning& standard) {
    TuneSpace space;
    for (const TileShape& tile : tiles) space.tiles.push_back(tile.named());
    const std::int64_t splits = standard.at("splits");
    space["splits"] = {splits};
    if (splits > 1) space["splits"].push_back(ceil_div(splits, 2));
    space["splits"].push_back(splits * 2);
    return space;
}

Verdict gemm_tile_verdict(const Traits& device) {
    const GemmTile& smallest = tiles.back();
    if (gemm_tile_fits(device, smallest)) return Verdict::yes();
    return Verdict::no(cat("it needs work-groups of ", smallest.threads(), " work-items and ",
                           local_bytes(smallest), " bytes of local memory, and the device has ",
                           device.max_work_group, " and ", device.local_bytes));
}

}  // namespace dlprim
