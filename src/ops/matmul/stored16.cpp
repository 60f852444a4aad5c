// SPDX-License-Identifier: MIT
// matmul.wgmma_direct (mma_direct): products of two matrices that are both half or both bfloat16 on
// NVIDIA's tensor cores, without packing (kernels/matmul/stored16.cl). If a product has few tiles
// and a long K, K is split into parts in the workspace, and a second kernel adds them in order.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/matrix/named_tile.hpp"
#include "engine/matrix/stored16_tile.hpp"
#include "engine/storage.hpp"
#include "ops/matmul/engine.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace dlprim::matmul {

namespace {

/// The default number of stages for each tile of the table, if so many fit.
constexpr std::array<std::int64_t, 5> usual_stages{4, 4, 4, 3, 4};
static_assert(usual_stages.size() == h200::stored16_transposed_rates.size());

/// Returns the tiles of C, with as many stages as fit into a work-group's local memory.
std::vector<Stored16Tile> tiles(MatrixUnit unit, const Traits& device) {
    return stored16_tiles(h200::stored16_transposed_rates, unit, device,
                          {.row_bytes = 0, .sums = true, .any_number = true});
}

struct Cut : TileCut {
    Stored16Tile tile;
};
Cut cut_of(const Gemm& g, const Stored16Tile& tile, std::int64_t splits) {
    Cut cut{{ceil_div(g.m, tile.rows), ceil_div(g.n, tile.columns), 1, 1}, tile};
    cut.k_part = std::max(
        stored16_depth, ceil_div(ceil_div(g.k, std::max<std::int64_t>(splits, 1)), stored16_depth) *
                            stored16_depth);
    cut.splits = std::max<std::int64_t>(1, ceil_div(g.k, cut.k_part));
    return cut;
}

double seconds_of(const Traits& device, const Problem& problem, const Gemm& g, const Cut& cut) {
    const double seconds =
        stored16_group_seconds(device, cut.tile, static_cast<double>(cut.groups(g)),
                               static_cast<double>(cut.k_part) / stored16_depth);
    return std::max(seconds + device.launch_us * 1e-6, roofline_seconds(device, problem, 0, 1.0)) +
           parts_seconds(device, g.c_elements() * 4.0, cut.splits, 1.0);
}

class Stored16Engine : public MatMulEngine {
  public:
    Stored16Engine(const std::string& op, MatrixUnit unit)
        : MatMulEngine(op, cat(name_of(unit), "_direct")), unit_(unit) {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        const DType dtype = problem.inputs.at(0).dtype;
        if (Verdict verdict = unit_verdict(unit_, device, {dtype, problem.outputs.at(0).dtype});
            !verdict)
            return verdict;
        if (Verdict verdict = stored16_tiles_verdict(tiles(unit_, device)); !verdict)
            return verdict;
        if ((dtype != DType::f16 && dtype != DType::bf16) || problem.inputs.at(1).dtype != dtype)
            return Verdict::no("it needs both inputs in half or both in bfloat16");
        if (problem.precision == Precision::fp32)
            return Verdict::no(
                "it does not support precision fp32: tensor cores round sums more coarsely than "
                "float does");
        if (Verdict verdict = check_gemm(problem, true); !verdict) return verdict;
        const Gemm g = gemm_of(problem);
        const std::int64_t line_a = g.transpose_a ? g.m : g.k, line_b = g.transpose_b ? g.k : g.n;
        if (line_a % 8 != 0 || line_b % 8 != 0)
            return Verdict::no(
                cat("it needs rows whose length is a multiple of 8, and the inputs' rows have ",
                    line_a, " and ", line_b, " elements"));
        return Verdict::yes();
    }
    bool computes_in(Precision precision) const override { return precision != Precision::fp32; }

    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        return cut_of(device, g, tuning).workspace_bytes(g);
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        return seconds_of(device, problem, g, cut_of(device, g, tuning));
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        const std::int64_t splits = default_tuning(device, problem).at("splits");
        TuneSpace space{{"splits", {splits, splits * 2}}, {"stages", {3, 4, 6}}};
        for (const Stored16Tile& tile : tiles(unit_, device))
            if (tile.most_stages >= 2) space.tiles.push_back(tile.named());
        if (splits > 1) space["splits"].push_back(splits / 2);
        return space;
    }

    /// The cheapest by the model, of all tiles and numbers of parts.
    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        const Gemm g = gemm_of(problem);
        const std::vector<Stored16Tile> all = tiles(unit_, device);
        std::vector<std::size_t> fitting;
        for (std::size_t i = 0; i < all.size(); ++i)
            if (all[i].most_stages >= 2) fitting.push_back(i);
        const auto best =
            cheapest(fitting.size(), parts_of_k(g, 4 * stored16_depth),
                     [&](std::size_t tile, std::int64_t splits) {
                         return seconds_of(device, problem, g,
                                           matmul::cut_of(g, all[fitting[tile]], splits));
                     });
        if (!best) return {};
        const std::size_t tile = fitting[best->tile];
        return with(all[tile].named(), {{"splits", best->splits}, {"stages", usual_stages[tile]}});
    }

    std::vector<std::string> sources() const override {
        return {"matmul/stored16.cl", "matmul/finish.cl"};
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const Cut cut = cut_of(context.traits(), g, tuning);
        // More stages than steps plus one are of no use.
        const std::int64_t stages =
            std::min({tuning.at("stages"), cut.tile.most_stages,
                      std::max<std::int64_t>(2, cut.k_part / stored16_depth + 1)});
        return tiled_launch(
            context, problem, "matmul/stored16.cl", "matmul_stored16",
            cat("#define WM ", cut.tile.rows / stored16_block, "\n#define BN ", cut.tile.columns,
                "\n#define STAGES ", stages, "\n#define C_FOURS ", g.n % 4 == 0, "\n",
                unit_ == MatrixUnit::mma ? "#define MMA 1\n" : ""),
            stored16_items, cut);
    }

  private:
    Cut cut_of(const Traits& device, const Gemm& g, const Tuning& tuning) const {
        return matmul::cut_of(g, named_tile(tiles(unit_, device), tuning), tuning.at("splits"));
    }

    MatrixUnit unit_;
};

}  // namespace

void add_stored16(EngineRegistry& engines, const std::string& op) {
    for (const MatrixUnit unit : matrix_units)
        engines.add(std::make_unique<Stored16Engine>(op, unit));
}

}  // namespace dlprim::matmul
