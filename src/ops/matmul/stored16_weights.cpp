// SPDX-License-Identifier: MIT
// inner_product.wgmma_half and matmul.wgmma_half (mma_half): products of activations in half or
// bfloat16 with a matrix of floats on NVIDIA's tensor cores. The matrix is packed to the
// activations' type. A constant matrix is packed once. Any other is packed by a launch of its own,
// whose time the planner counts. That pays if there are many rows of activations. The kernels are
// those of convolutions: rows of A are pixels, and k are their channels
// (kernels/matrix/stored16.cl).
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/matrix/model.hpp"
#include "engine/matrix/named_tile.hpp"
#include "engine/matrix/stored16_product.hpp"
#include "ops/matmul/engine.hpp"

#include <algorithm>

namespace dlprim::matmul {

namespace {

constexpr std::int64_t rows = 128;

// Returns where the elements of B are. The columns of C are the outputs, and k are the inputs.
WeightSource source_of(const Gemm& g) {
    WeightSource source{.outputs = g.n, .inputs = g.k, .weight_out = 1, .weight_in = g.n};
    if (g.transpose_b) {
        source.weight_out = g.k;
        source.weight_in = 1;
    }
    return source;
}
Stored16Weights packed(const Gemm& g) {
    return Stored16Weights(source_of(g), stored16_depth);
}

class Stored16WeightsEngine : public MatMulEngine {
  public:
    Stored16WeightsEngine(const std::string& op, MatrixUnit unit)
        : MatMulEngine(op, cat(name_of(unit), "_half")), unit_(unit) {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        const DType dtype = problem.inputs.at(0).dtype;
        if (Verdict verdict = unit_verdict(unit_, device, {dtype, problem.outputs.at(0).dtype});
            !verdict)
            return verdict;
        if (most_stages(device, 64) < 2)
            return Verdict::no("its tiles do not fit into the local memory of a work-group");
        if (stored16_kind(dtype) == 0)
            return Verdict::no(
                cat("it needs a first input in half or bfloat16, not ", name_of(dtype)));
        if (problem.precision == Precision::fp32 ||
            (dtype == DType::bf16 && problem.precision != Precision::bf16))
            return Verdict::no(
                "it rounds the second input to the type of the first, which the precision "
                "does not allow");
        // Check the problem with float in place of the operands that may have 16 bits.
        Problem plain = problem;
        plain.inputs[0].dtype = DType::f32;
        if (stored16_kind(plain.outputs.at(0).dtype) != 0) plain.outputs[0].dtype = DType::f32;
        for (const EpilogueStage& stage : plain.epilogue)
            if (stage.kind == EpilogueStage::Kind::add) {
                Operand& added = plain.inputs[static_cast<std::size_t>(stage.operand)];
                if (stored16_kind(added.dtype) != 0) added.dtype = DType::f32;
            }
        if (Verdict verdict = check_gemm(plain); !verdict) return verdict;
        const Gemm g = gemm_of(problem);
        if (g.batches != 1 || g.transpose_a || g.alpha != 1)
            return Verdict::no(
                "it needs a single product without scaling whose first input is not transposed");
        if (g.k % 8 != 0 || g.k == 0)
            return Verdict::no(
                cat("it needs a K (the length of the sums) that is a positive multiple of 8, not ",
                    g.k));
        constexpr double limit = 2147000000.0;
        if (static_cast<double>(g.m) * static_cast<double>(g.k) > limit ||
            static_cast<double>(g.n) * static_cast<double>(g.k) > limit ||
            static_cast<double>(g.m) * static_cast<double>(g.n) > limit)
            return Verdict::no("a matrix has too many elements for its 32-bit indices");
        return Verdict::yes();
    }
    bool computes_in(Precision precision) const override { return precision != Precision::fp32; }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        LayoutChoice choice = LayoutChoice::all(problem);
        const Gemm g = gemm_of(problem);
        choice.inputs[1] =
            Layout::packed(cat("matmul.wgmma_half:", stored16_kind(problem.inputs[0].dtype), ';',
                               g.n, 'x', g.k, g.transpose_b ? 't' : 'n'),
                           static_cast<std::uint64_t>(packed(g).bytes));
        return {choice};
    }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const std::int64_t splits = tuning.at("splits");
        return splits <= 1 ? 0 : static_cast<std::uint64_t>(splits * g.m * g.n) * 4;
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        // The model of convolutions, with two work-groups per compute unit. Without taps a step
        // takes 0.7 to 0.75 of that on an H200.
        const Gemm g = gemm_of(problem);
        const std::int64_t columns = tuning.at("columns"), splits = tuning.at("splits");
        const double groups =
            static_cast<double>(ceil_div(g.m, rows) * ceil_div(g.n, columns) * splits);
        const double seconds =
            0.8 * stored16_group_seconds(device, tile_of(device, columns), groups,
                                         static_cast<double>(ceil_div(packed(g).steps, splits))) +
            device.launch_us * 1e-6;
        return std::max(seconds, roofline_seconds(device, problem, 0, 1.0, 0.6)) +
               parts_seconds(device, g.c_elements() * 4.0, splits);
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        // Tiles have 64 columns if wider ones would give fewer than two work-groups per compute
        // unit. If that is still too few, K is split into parts until there are about two.
        const Gemm g = gemm_of(problem);
        const std::int64_t wanted = 2 * std::max(device.compute_units, 1);
        const std::int64_t columns =
            ceil_div(g.m, rows) * ceil_div(g.n, 2 * stored16_depth) >= wanted &&
                    most_stages(device, 128) >= 2
                ? 128
                : 64;
        const std::int64_t tiles = ceil_div(g.m, rows) * ceil_div(g.n, columns);
        const std::int64_t splits = std::clamp<std::int64_t>(
            wanted / tiles, 1, std::max<std::int64_t>(1, packed(g).steps / 4));
        return {{"columns", columns}, {"splits", splits}, {"stages", columns == 64 ? 4 : 3}};
    }
    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        const std::int64_t splits = default_tuning(device, problem).at("splits");
        TuneSpace space{{"columns", {64}}, {"splits", {splits, splits * 2}}, {"stages", {3, 4, 6}}};
        if (most_stages(device, 128) >= 2) space["columns"].push_back(128);
        if (splits > 1) space["splits"].push_back(ceil_div(splits, 2));
        return space;
    }

    std::vector<std::string> sources() const override { return stored16_product_sources(); }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const std::int64_t columns = tuning.at("columns"), splits = tuning.at("splits");
        auto launch = std::make_unique<KernelLaunch>();
        add_stored16_product(
            *launch, context, problem,
            {.images = Images::matrix(g.m),
             .pixels = g.m,
             .channels_in = g.k,
             .channels_out = g.n,
             .weights = packed(g),
             .splits = splits,
             .bias = splits > 1 ? -1 : g.bias,
             .rows = rows,
             .columns = columns,
             .stages = std::min(tuning.at("stages"), most_stages(context.traits(), columns)),
             .unit = unit_});
        if (splits > 1) add_stored16_sum(*launch, context, problem, splits, g.n, g.bias, 64);
        return launch;
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        auto launch = std::make_unique<KernelLaunch>();
        add_stored16_packing(*launch, context, source_of(gemm_of(problem)), problem.inputs[0].dtype,
                             stored16_depth, 0);
        return launch;
    }

  private:
    Stored16Tile tile_of(const Traits& device, std::int64_t columns) const {
        const StageRoom room{.row_bytes = 12, .sums = true, .any_number = true};
        return named_tile(stored16_tiles(h200::stored16_rates, unit_, device, room),
                          {{"rows", rows}, {"columns", columns}});
    }
    /// Returns how many stages of a tile with that many columns fit into local memory, and 0 if the
    /// tile's sums do not fit.
    std::int64_t most_stages(const Traits& device, std::int64_t columns) const {
        return tile_of(device, columns).most_stages;
    }

    MatrixUnit unit_;
};

}  // namespace

void add_stored16_weights(EngineRegistry& engines, const std::string& op) {
    for (const MatrixUnit unit : matrix_units)
        engines.add(std::make_unique<Stored16WeightsEngine>(op, unit));
}

}  // namespace dlprim::matmul
