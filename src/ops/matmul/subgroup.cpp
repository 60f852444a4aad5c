// SPDX-License-Identifier: MIT
// matmul.subgroup: sub-groups that share values without local memory (kernels/matmul/subgroup.cl),
// for GPUs that have them. Long sums of small products are split along k (split-K): partial sums go
// to the workspace, and a second kernel adds them in order.
#include "engine/subgroup.hpp"
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/matrix/named_tile.hpp"
#include "engine/storage.hpp"
#include "ops/matmul/engine.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::matmul {

namespace {

constexpr std::int64_t k_step = 16;  ///< part sizes are multiples of it

TileCut cut_of(const Traits& device, const Gemm& g, const SubgroupTile& tile, std::int64_t splits) {
    TileCut cut{ceil_div(g.m, tile.bm()), ceil_div(g.n, tile.bn(device)), 1, 1};
    cut.k_part = std::max(
        k_step, ceil_div(ceil_div(g.k, std::max<std::int64_t>(splits, 1)), k_step) * k_step);
    cut.splits = std::max<std::int64_t>(1, ceil_div(g.k, cut.k_part));
    return cut;
}
TileCut cut_of(const Traits& device, const Gemm& g, const Tuning& tuning) {
    return cut_of(device, g, subgroup_tile(device, tuning), tuning.at("splits"));
}

double seconds_of(const Traits& device, const Problem& problem, const Gemm& g,
                  const SubgroupTile& tile, const TileCut& cut) {
    const double padded = 2.0 * static_cast<double>(cut.tiles_m * tile.bm()) *
                          static_cast<double>(cut.tiles_n * tile.bn(device)) *
                          static_cast<double>(g.k * g.batches);
    // Whole waves of work-groups over the compute units.
    const double units = std::max(device.compute_units, 1);
    const double each = static_cast<double>(cut.groups(g)) / units;
    const double fill = each > 0 && each < 4 ? each / std::ceil(each) : 1.0;
    const double share = subgroup_share(device, tile, g.transpose_b) * std::max(fill, 1e-3);
    double seconds = roofline_seconds(device, problem, padded, share);
    seconds += parts_seconds(device, g.c_elements() * 4.0, cut.splits, 1.0);
    return seconds;
}

class Subgroup : public MatMulEngine {
  public:
    explicit Subgroup(const std::string& op) : MatMulEngine(op, "subgroup") {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = subgroup_verdict(device); !verdict) return verdict;
        return check_gemm(problem, true);
    }

    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        return cut_of(device, g, tuning).workspace_bytes(g);
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        return seconds_of(device, problem, g, subgroup_tile(device, tuning),
                          cut_of(device, g, tuning));
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        const std::int64_t splits = default_tuning(device, problem).at("splits");
        TuneSpace space;
        for (const SubgroupTile& tile : subgroup_tiles(device))
            space.tiles.push_back(tile.named(device));
        space["splits"] = {1};
        if (gemm_of(problem).k >= 512)
            for (const std::int64_t s : {splits / 2, splits, splits * 2})
                if (s > 1) space["splits"].push_back(s);
        return space;
    }

    /// The cheapest by the model, over tiles and numbers of parts.
    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        const Gemm g = gemm_of(problem);
        const std::vector<SubgroupTile> tiles = subgroup_tiles(device);
        const auto best =
            cheapest(tiles.size(), parts_of_k(g, 128), [&](std::size_t tile, std::int64_t splits) {
                return seconds_of(device, problem, g, tiles[tile],
                                  cut_of(device, g, tiles[tile], splits));
            });
        return best ? with(tiles[best->tile].named(device), {{"splits", best->splits}})
                    : with(tiles.back().named(device), {{"splits", 1}});
    }

    std::vector<std::string> sources() const override {
        return {"matmul/subgroup.cl", "matmul/finish.cl"};
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Traits& device = context.traits();
        const SubgroupTile tile = subgroup_tile(device, tuning);
        std::string defines;
        for (const auto& [name, value] : subgroup_defines(device, tile))
            defines += cat("#define ", name, ' ', value, '\n');
        return tiled_launch(context, problem, "matmul/subgroup.cl", "matmul_subgroup", defines,
                            static_cast<std::size_t>(tile.threads(device)),
                            cut_of(device, gemm_of(problem), tuning));
    }
};

}  // namespace

void add_subgroup(EngineRegistry& engines, const std::string& op) {
    engines.add(std::make_unique<Subgroup>(op));
}

}  // namespace dlprim::matmul
