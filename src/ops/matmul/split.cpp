// SPDX-License-Identifier: MIT
// matmul.wgmma_split (mma_split): products on NVIDIA's tensor cores, in exact float or in tf32
// (kernels/matmul/split.cl). Operands are float or have 16 bits, in any mix. If a product has few
// tiles and a long K, K is split into parts in the workspace, and a second kernel adds them in
// order.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/matrix/device_table.hpp"
#include "engine/matrix/split_tile.hpp"
#include "engine/storage.hpp"
#include "ops/matmul/engine.hpp"

#include <algorithm>

namespace dlprim::matmul {

namespace {

struct Cut : TileCut {
    std::int64_t wm;
};
Cut cut_of(const Gemm& g, std::int64_t wm, std::int64_t splits) {
    Cut cut{{ceil_div(g.m, split_rows * wm), ceil_div(g.n, split_columns), 1, 1}, wm};
    cut.k_part = std::max(
        split_depth,
        ceil_div(ceil_div(g.k, std::max<std::int64_t>(splits, 1)), split_depth) * split_depth);
    cut.splits = std::max<std::int64_t>(1, ceil_div(g.k, cut.k_part));
    return cut;
}
Cut cut_of(const Gemm& g, const Tuning& tuning) {
    return cut_of(g, wm_of(tuning), tuning.at("splits"));
}

double seconds_of(const Traits& device, MatrixUnit unit, const Problem& problem, const Gemm& g,
                  const Cut& cut) {
    TileSpeed speed;
    speed.step_seconds =
        (cut.wm == 2 ? h200::split_both_steps.rows_128 : h200::split_both_steps.rows_64) *
        unit_pace(unit) / split_gain(split_products(problem));
    speed.lead = 2;
    double seconds = tile_seconds(device, speed, static_cast<double>(cut.groups(g)),
                                  static_cast<double>(cut.k_part) / split_depth);
    seconds =
        std::max(seconds, roofline_seconds(device, problem, 0, 1.0)) + device.launch_us * 1e-6;
    seconds += parts_seconds(device, g.c_elements() * 4.0, cut.splits, 1.0);
    return seconds;
}

class SplitEngine : public MatMulEngine {
  public:
    SplitEngine(const std::string& op, MatrixUnit unit)
        : MatMulEngine(op, cat(name_of(unit), "_split")), unit_(unit) {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = unit_verdict(unit_, device, {DType::f16}); !verdict) return verdict;
        if (!fits(device, problem, 1))
            return Verdict::no("its tiles do not fit into the local memory of a work-group");
        return check_gemm(problem, true);
    }
    bool computes_in(Precision) const override { return true; }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        return cut_of(g, tuning).workspace_bytes(g);
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        return seconds_of(device, unit_, problem, g, cut_of(g, tuning));
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        return rows_tune_space(default_tuning(device, problem), most_wm(device, problem));
    }

    /// The cheapest by the model, of all tiles and numbers of parts.
    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        const Gemm g = gemm_of(problem);
        return choose_rows(most_wm(device, problem), parts_of_k(g, 2 * split_depth),
                           [&](std::int64_t wm, std::int64_t splits) {
                               return seconds_of(device, unit_, problem, g, cut_of(g, wm, splits));
                           });
    }

    std::vector<std::string> sources() const override {
        return {"matmul/split.cl", "matmul/finish.cl"};
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Cut cut = cut_of(gemm_of(problem), tuning);
        return tiled_launch(
            context, problem, "matmul/split.cl", "matmul_split",
            cat("#define WM ", cut.wm, "\n#define PRODUCTS ", split_products(problem), "\n",
                unit_ == MatrixUnit::mma ? "#define MMA 1\n" : ""),
            split_items, cut);
    }

  private:
    /// The largest tile that fits, in 64 rows; 0 if none does.
    std::int64_t most_wm(const Traits& device, const Problem& problem) const {
        return fits(device, problem, 2) ? 2 : fits(device, problem, 1) ? 1 : 0;
    }

    /// Whether local memory holds two steps, with the scale factors and largest values of their
    /// lines.
    bool fits(const Traits& device, const Problem& problem, std::int64_t wm) const {
        const std::int64_t lines = 64 * wm + split_columns;
        return 2 * lines * split_depth * (split_products(problem) == 1 ? 2 : 4) + 2 * lines * 4 +
                   4096 <=
               unit_local_bytes(unit_, device);
    }

    MatrixUnit unit_;
};

}  // namespace

void add_split(EngineRegistry& engines, const std::string& op) {
    for (const MatrixUnit unit : matrix_units) engines.add(std::make_unique<SplitEngine>(op, unit));
}

}  // namespace dlprim::matmul
