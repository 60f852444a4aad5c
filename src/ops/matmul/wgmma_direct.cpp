// SPDX-License-Identifier: MIT
// matmul.wgmma_direct (mma_direct): products of matrices that are both stored as halves, or both as
// bfloat16, on NVIDIA's tensor cores, as they lie in memory (kernels/matmul/wgmma_direct.cl); long
// sums of small products are split along k into the workspace, and added in order by a second
// kernel.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/matrix_unit.hpp"
#include "engine/named_tile.hpp"
#include "engine/storage.hpp"
#include "ops/matmul/engine.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace dlprim::matmul {

namespace {

constexpr std::int64_t depth = 64;
constexpr std::size_t items = 256;

/// Tiles of C: rate on a full H200, work-groups that share a compute unit, stages that pay. Their
/// copies and instructions are those of the convolutions' filter gradients, which rates are from.
struct Tile {
    std::int64_t wm, columns;
    double tflops;
    int resident, stages;
    std::int64_t rows() const { return 64 * wm; }
    /// Its part of a tuning.
    Tuning named() const { return {{"rows", rows()}, {"columns", columns}}; }
    std::int64_t most_stages(std::int64_t bytes) const {
        return rows() * (columns + 8) * 4 > bytes ? 0 : bytes / ((rows() + columns) * 128);
    }
};
constexpr std::array<Tile, 5> tiles{{
    {1, 128, 270, 2, 4},
    {1, 256, 330, 1, 4},
    {2, 64, 270, 2, 4},
    {2, 128, 380, 2, 3},
    {2, 256, 430, 1, 4},
}};

struct Cut : TileCut {
    Tile tile;
};
Cut cut_of(const Gemm& g, const Tile& tile, std::int64_t splits) {
    Cut cut{{ceil_div(g.m, tile.rows()), ceil_div(g.n, tile.columns), 1, 1}, tile};
    cut.k_part =
        std::max(depth, ceil_div(ceil_div(g.k, std::max<std::int64_t>(splits, 1)), depth) * depth);
    cut.splits = std::max<std::int64_t>(1, ceil_div(g.k, cut.k_part));
    return cut;
}
Cut cut_of(const Gemm& g, const Tuning& tuning) {
    return cut_of(g, named_tile(tiles, tuning), tuning.at("splits"));
}

double seconds_of(const Traits& device, MatrixUnit unit, const Problem& problem, const Gemm& g,
                  const Cut& cut) {
    constexpr double h200_units = 132;
    const Tile& tile = cut.tile;
    const double step = 2.0 * static_cast<double>(tile.rows() * tile.columns * depth) /
                        (tile.tflops * 1e12 / h200_units) * unit_pace(unit);
    // Work-groups that share a compute unit hide each other's waiting; one alone does so less.
    const double each = static_cast<double>(cut.groups(g)) / std::max(device.compute_units, 1);
    const double rounds =
        each <= 1 ? 1 + 0.4 * (tile.resident - 1) : std::ceil(each / tile.resident) * tile.resident;
    const double seconds = rounds * step * (static_cast<double>(cut.k_part) / depth + 3.0);
    const double sum = cut.splits == 1
                           ? 0
                           : 2.0 * g.c_elements() * 4.0 * static_cast<double>(cut.splits) /
                                     (std::max(device.gbytes_per_s, 1.0) * 1e9) +
                                 device.launch_us * 1e-6;
    return std::max(seconds + device.launch_us * 1e-6, roofline_seconds(device, problem, 0, 1.0)) +
           sum;
}

class WgmmaDirect : public MatMulEngine {
  public:
    WgmmaDirect(std::string op, MatrixUnit unit)
        : MatMulEngine(std::move(op), cat(name_of(unit), "_direct")), unit_(unit) {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        const DType dtype = problem.inputs.at(0).dtype;
        if (const Verdict verdict =
                unit_verdict(unit_, device, {dtype, problem.outputs.at(0).dtype});
            !verdict)
            return verdict;
        if (most_stages(device, tiles.front()) < 2)
            return Verdict::no("its tiles do not fit into the local memory of a work-group");
        if ((dtype != DType::f16 && dtype != DType::bf16) || problem.inputs.at(1).dtype != dtype)
            return Verdict::no("it needs both inputs in half or both in bfloat16");
        if (problem.precision == Precision::fp32)
            return Verdict::no(
                "fp32 is not allowed: tensor cores round its sums more coarsely than float does");
        if (const Verdict verdict = check_gemm(problem, true); !verdict) return verdict;
        const Gemm g = gemm_of(problem);
        const std::int64_t line_a = g.transpose_a ? g.m : g.k, line_b = g.transpose_b ? g.k : g.n;
        if (line_a % 8 != 0 || line_b % 8 != 0)
            return Verdict::no(
                cat("it needs rows whose length is a multiple of 8, and the inputs' rows have ",
                    line_a, " and ", line_b, " elements"));
        return Verdict::yes();
    }
    bool computes_in(Precision precision) const override { return precision != Precision::fp32; }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const Cut cut = cut_of(g, tuning);
        return cut.splits == 1 ? 0
                               : static_cast<std::uint64_t>(cut.splits * g.batches * g.m * g.n) * 4;
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        return seconds_of(device, unit_, problem, g, cut_of(g, tuning));
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        const std::int64_t splits = default_tuning(device, problem).at("splits");
        TuneSpace space{{"splits", {splits, splits * 2}}, {"stages", {3, 4, 6}}};
        for (const Tile& tile : tiles)
            if (most_stages(device, tile) >= 2) space.tiles.push_back(tile.named());
        if (splits > 1) space["splits"].push_back(splits / 2);
        return space;
    }

    /// The cheapest by the model, over tiles and numbers of parts.
    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        const Gemm g = gemm_of(problem);
        Tuning best;
        double best_seconds = 1e300;
        for (const Tile& tile : tiles) {
            if (most_stages(device, tile) < 2) continue;
            for (std::int64_t splits = 1;
                 splits <= 64 && (splits == 1 || g.k / splits >= 4 * depth); splits *= 2) {
                if (splits > 1 && g.c_elements() * 4.0 * static_cast<double>(splits) > 256e6) break;
                const double seconds =
                    seconds_of(device, unit_, problem, g, cut_of(g, tile, splits));
                if (seconds >= best_seconds) continue;
                best_seconds = seconds;
                best = with(tile.named(), {{"splits", splits}, {"stages", tile.stages}});
            }
        }
        return best;
    }

    std::vector<std::string> sources() const override {
        return {"matmul/wgmma_direct.cl", "matmul/finish.cl", "common/half_store.clh",
                "common/matrix_half.clh", storage_source};
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const Cut cut = cut_of(g, tuning);
        // A stage more than there are steps is of no use.
        const std::int64_t stages =
            std::min({tuning.at("stages"), most_stages(context.traits(), cut.tile),
                      std::max<std::int64_t>(2, cut.k_part / depth + 1)});
        return tiled_launch(context, problem, "matmul/wgmma_direct.cl", "matmul_wgmma_direct",
                            cat("#define WM ", cut.tile.wm, "\n#define BN ", cut.tile.columns,
                                "\n#define STAGES ", stages, "\n#define C_FOURS ", g.n % 4 == 0,
                                "\n", unit_ == MatrixUnit::mma ? "#define MMA 1\n" : ""),
                            items, cut);
    }

  private:
    std::int64_t most_stages(const Traits& device, const Tile& tile) const {
        return tile.most_stages(unit_local_bytes(unit_, device));
    }

    MatrixUnit unit_;
};

}  // namespace

void add_wgmma_direct(EngineRegistry& engines, const std::string& op) {
    for (const MatrixUnit unit : matrix_units) engines.add(std::make_unique<WgmmaDirect>(op, unit));
}

}  // namespace dlprim::matmul
