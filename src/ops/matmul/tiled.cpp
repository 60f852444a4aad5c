// SPDX-License-Identifier: MIT
// matmul.tiled: products on GPUs by tiles in local memory. If a product has few tiles and a long K,
// K is split into parts in the workspace, and a second kernel adds them in order.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/matrix/float_tile.hpp"
#include "engine/matrix/model.hpp"
#include "engine/matrix/named_tile.hpp"
#include "engine/storage.hpp"
#include "ops/matmul/engine.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace dlprim::matmul {

namespace {

/// The tile shapes of tiled.cl, the largest first.
struct Tile {
    int tx, ty, gm, gn, bk;
    /// The share of the peak that it reaches on a full device, for the estimate.
    double efficiency;
    std::int64_t bm() const { return 4 * gm * ty; }
    std::int64_t bn() const { return 4 * gn * tx; }
    std::uint64_t threads() const { return static_cast<std::uint64_t>(tx * ty); }
    std::uint64_t local_bytes() const {
        return static_cast<std::uint64_t>(8 * bk * (bm() + bn() + 8));
    }
    /// The properties by which a tuning names this tile.
    Tuning named() const {
        return {{"rows", bm()}, {"columns", bn()}, {"depth", bk}, {"threads", tx * ty}};
    }
};
constexpr std::array<Tile, 4> tiles{{
    {16, 16, 2, 2, 8, 0.60},
    {8, 8, 2, 2, 8, 0.45},
    {16, 16, 1, 1, 16, 0.30},
    {8, 8, 1, 1, 16, 0.20},
}};

bool fits(const Traits& device, const Tile& tile) {
    return tile.threads() <= device.max_work_group && tile.local_bytes() <= device.local_bytes &&
           tile_registers_fit(device, tile.gm, tile.gn);
}

struct Cut : TileCut {
    Tile tile;
};
Cut cut_of(const Gemm& g, const Tile& tile, std::int64_t splits) {
    Cut cut{{ceil_div(g.m, tile.bm()), ceil_div(g.n, tile.bn()), 1, 1}, tile};
    cut.k_part = std::max<std::int64_t>(
        tile.bk, ceil_div(ceil_div(g.k, std::max<std::int64_t>(splits, 1)), tile.bk) * tile.bk);
    cut.splits = std::max<std::int64_t>(1, ceil_div(g.k, cut.k_part));
    return cut;
}
Cut cut_of(const Gemm& g, const Tuning& tuning) {
    return cut_of(g, named_tile(tiles, tuning), tuning.at("splits"));
}

double seconds_of(const Traits& device, const Problem& problem, const Gemm& g, const Cut& cut) {
    const double padded = 2.0 * static_cast<double>(cut.tiles_m * cut.tile.bm()) *
                          static_cast<double>(cut.tiles_n * cut.tile.bn()) *
                          static_cast<double>(g.k * g.batches);
    // Work-groups run in rounds over the compute units. If there are few rounds, only whole ones
    // count.
    const double units = std::max(device.compute_units, 1);
    const double groups = static_cast<double>(cut.groups(g));
    const double rounds = std::max(1.0, groups / units);
    const double fill =
        groups / units / (rounds < 4 ? std::max(1.0, std::ceil(groups / units)) : rounds);
    const double share = (device.wide_vectors ? 0.06 : cut.tile.efficiency) * std::max(fill, 1e-3);
    double seconds = roofline_seconds(device, problem, padded, share);
    seconds += parts_seconds(device, g.c_elements() * 4.0, cut.splits, 1.0);
    return seconds;
}

class Tiled : public MatMulEngine {
  public:
    explicit Tiled(const std::string& op) : MatMulEngine(op, "tiled") {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (!fits(device, tiles.back()))
            return Verdict::no(cat("it needs work-groups of ", tiles.back().threads(),
                                   " work-items and ", tiles.back().local_bytes(),
                                   " bytes of local memory, and the device offers ",
                                   device.max_work_group, " and ", device.local_bytes));
        return check_gemm(problem, true);
    }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        return cut_of(g, tuning).workspace_bytes(g);
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        return seconds_of(device, problem, g, cut_of(g, tuning));
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        const std::int64_t splits = default_tuning(device, problem).at("splits");
        TuneSpace space;
        for (const Tile& tile : tiles)
            if (fits(device, tile)) space.tiles.push_back(tile.named());
        space["splits"] = {1};
        if (gemm_of(problem).k >= 512)
            for (std::int64_t s : {splits / 2, splits, splits * 2})
                if (s > 1) space["splits"].push_back(s);
        return space;
    }

    /// The cheapest by the model, of all tiles and numbers of parts.
    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        const Gemm g = gemm_of(problem);
        std::vector<Tile> fitting;
        for (const Tile& tile : tiles)
            if (fits(device, tile)) fitting.push_back(tile);
        const auto best = cheapest(
            fitting.size(), parts_of_k(g, 128), [&](std::size_t tile, std::int64_t splits) {
                return seconds_of(device, problem, g, cut_of(g, fitting[tile], splits));
            });
        return best ? with(fitting[best->tile].named(), {{"splits", best->splits}})
                    : with(tiles.back().named(), {{"splits", 1}});
    }

    std::vector<std::string> sources() const override {
        return {"matmul/tiled.cl", "matmul/finish.cl"};
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Cut cut = cut_of(gemm_of(problem), tuning);
        const Tile& tile = cut.tile;
        const int steps = tile_unrolled_steps(context.traits());
        return tiled_launch(context, problem, "matmul/tiled.cl", "matmul_tiled",
                            cat("#define TX ", tile.tx, "\n#define TY ", tile.ty, "\n#define GM ",
                                tile.gm, "\n#define GN ", tile.gn, "\n#define BK ", tile.bk, "\n",
                                steps > 0 ? cat("#define TILE_STEPS ", steps, "\n") : ""),
                            tile.threads(), cut);
    }
};

}  // namespace

void add_tiled(EngineRegistry& engines, const std::string& op) {
    engines.add(std::make_unique<Tiled>(op));
}

}  // namespace dlprim::matmul
