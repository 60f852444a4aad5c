// SPDX-License-Identifier: MIT
// matmul.wgmma_split (mma_split): products in exact float, or in tf32, on NVIDIA's tensor cores
// (kernels/matmul/wgmma_split.cl), of operands in float or 16 bits in any mix; long sums of small
// products are split along k into the workspace, and added in order by a second kernel.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/matrix_unit.hpp"
#include "engine/split_products.hpp"
#include "engine/storage.hpp"
#include "ops/matmul/engine.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::matmul {

namespace {

constexpr std::int64_t warpgroup_rows = 64, columns = 128, depth = 64;
constexpr std::size_t items = 256;

struct Cut : TileCut {
    std::int64_t wm;
};
Cut cut_of(const Gemm& g, std::int64_t wm, std::int64_t splits) {
    Cut cut{{ceil_div(g.m, warpgroup_rows * wm), ceil_div(g.n, columns), 1, 1}, wm};
    cut.k_part =
        std::max(depth, ceil_div(ceil_div(g.k, std::max<std::int64_t>(splits, 1)), depth) * depth);
    cut.splits = std::max<std::int64_t>(1, ceil_div(g.k, cut.k_part));
    return cut;
}
Cut cut_of(const Gemm& g, const Tuning& tuning) {
    return cut_of(g, tuning.at("rows") / warpgroup_rows, tuning.at("splits"));
}

double seconds_of(const Traits& device, MatrixUnit unit, const Problem& problem, const Gemm& g,
                  const Cut& cut) {
    // A step of a tile, as of the convolutions on an H200.
    const double step =
        (cut.wm == 2 ? 2.2e-6 : 1.6e-6) * unit_pace(unit) / split_gain(split_products(problem));
    const double rounds =
        std::ceil(static_cast<double>(cut.groups(g)) / std::max(device.compute_units, 1));
    double seconds = rounds * step * (static_cast<double>(cut.k_part) / depth + 2.0);
    seconds =
        std::max(seconds, roofline_seconds(device, problem, 0, 1.0)) + device.launch_us * 1e-6;
    if (cut.splits > 1)
        seconds += 2.0 * g.c_elements() * 4.0 * static_cast<double>(cut.splits) /
                       (std::max(device.gbytes_per_s, 1.0) * 1e9) +
                   device.launch_us * 1e-6;
    return seconds;
}

class WgmmaSplit : public MatMulEngine {
  public:
    WgmmaSplit(std::string op, MatrixUnit unit)
        : MatMulEngine(std::move(op), cat(name_of(unit), "_split")), unit_(unit) {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (const Verdict verdict = unit_verdict(unit_, device, {DType::f16}); !verdict)
            return verdict;
        if (!fits(device, problem, 1))
            return Verdict::no("its tiles do not fit into the local memory of a work-group");
        return check_gemm(problem, true);
    }
    bool computes_in(Precision) const override { return true; }

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
        TuneSpace space{{"rows", {warpgroup_rows}}, {"splits", {splits, splits * 2}}};
        if (fits(device, problem, 2)) space["rows"].push_back(2 * warpgroup_rows);
        if (splits > 1) space["splits"].push_back(splits / 2);
        return space;
    }

    /// The cheapest by the model, over tiles and numbers of parts.
    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        const Gemm g = gemm_of(problem);
        Tuning best{{"rows", warpgroup_rows}, {"splits", 1}};
        double best_seconds = 1e300;
        for (std::int64_t wm = 1; wm <= 2 && fits(device, problem, wm); ++wm) {
            for (std::int64_t splits = 1;
                 splits <= 64 && (splits == 1 || g.k / splits >= 2 * depth); splits *= 2) {
                if (splits > 1 && g.c_elements() * 4.0 * static_cast<double>(splits) > 256e6) break;
                const double seconds = seconds_of(device, unit_, problem, g, cut_of(g, wm, splits));
                if (seconds < best_seconds) {
                    best_seconds = seconds;
                    best = {{"rows", warpgroup_rows * wm}, {"splits", splits}};
                }
            }
        }
        return best;
    }

    std::vector<std::string> sources() const override {
        return {"matmul/wgmma_split.cl", "matmul/finish.cl", "common/matrix_tile.clh",
                "common/split_half.clh", storage_source};
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Cut cut = cut_of(gemm_of(problem), tuning);
        return tiled_launch(
            context, problem, "matmul/wgmma_split.cl", "matmul_wgmma_split",
            cat("#define WM ", cut.wm, "\n#define PRODUCTS ", split_products(problem), "\n",
                unit_ == MatrixUnit::mma ? "#define MMA 1\n" : ""),
            items, cut);
    }

  private:
    /// Whether local memory holds two steps, and factors and largest values of their lines.
    bool fits(const Traits& device, const Problem& problem, std::int64_t wm) const {
        const std::int64_t lines = 64 * wm + columns;
        return 2 * lines * depth * (split_products(problem) == 1 ? 2 : 4) + 2 * lines * 4 + 4096 <=
               unit_local_bytes(unit_, device);
    }

    MatrixUnit unit_;
};

}  // namespace

void add_wgmma_split(EngineRegistry& engines, const std::string& op) {
    for (const MatrixUnit unit : matrix_units) engines.add(std::make_unique<WgmmaSplit>(op, unit));
}

}  // namespace dlprim::matmul
