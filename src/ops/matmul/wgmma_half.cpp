// SPDX-License-Identifier: MIT
// inner_product.wgmma_half and matmul.wgmma_half (mma_half): products of activations that are
// stored as halves or bfloat16 with a matrix of floats, packed to the same type, on NVIDIA's tensor
// cores: once where it is constant, else in a launch of its own, which the planner counts and which
// pays where rows of activations are many. The kernels are the convolutions': rows of A are pixels
// and k their channels (kernels/conv2d/wgmma_half.cl).
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/matrix_unit.hpp"
#include "ops/matmul/engine.hpp"

#include <algorithm>

namespace dlprim::matmul {

namespace {

constexpr const char* product_path = "conv2d/wgmma_half.cl";
constexpr const char* pack_path = "conv2d/wgmma_half_pack.cl";
constexpr const char* sum_path = "conv2d/wgmma_half_sum.cl";
constexpr std::int64_t rows = 128, depth = 64, items = 256;

int kind_of(DType dtype) {
    return dtype == DType::f16 ? 1 : dtype == DType::bf16 ? 2 : 0;
}

// B as the kernels read it.
struct Packed {
    std::int64_t blocks, steps, blocks_at, bytes;
    explicit Packed(const Gemm& g)
        : blocks(ceil_div(g.n, depth)),
          steps(ceil_div(g.k, depth)),
          blocks_at(blocks * depth * 4),
          bytes(blocks_at + blocks * steps * depth * depth * 2) {}
};

class WgmmaHalf : public MatMulEngine {
  public:
    WgmmaHalf(std::string op, MatrixUnit unit)
        : MatMulEngine(std::move(op), cat(name_of(unit), "_half")), unit_(unit) {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        const DType dtype = problem.inputs.at(0).dtype;
        if (const Verdict verdict =
                unit_verdict(unit_, device, {dtype, problem.outputs.at(0).dtype});
            !verdict)
            return verdict;
        if (most_stages(device, 64) < 2)
            return Verdict::no("its tiles do not fit into the local memory of a work-group");
        if (kind_of(dtype) == 0) return Verdict::no("it needs a first input in half or bfloat16");
        if (problem.precision == Precision::fp32 ||
            (dtype == DType::bf16 && problem.precision != Precision::bf16))
            return Verdict::no(
                "it rounds the second input to the type of the first, which the precision "
                "does not allow");
        // What may be stored in 16 bits, as float.
        Problem plain = problem;
        plain.inputs[0].dtype = DType::f32;
        if (kind_of(plain.outputs.at(0).dtype) != 0) plain.outputs[0].dtype = DType::f32;
        for (const EpilogueStage& stage : plain.epilogue)
            if (stage.kind == EpilogueStage::Kind::add) {
                Operand& added = plain.inputs[static_cast<std::size_t>(stage.operand)];
                if (kind_of(added.dtype) != 0) added.dtype = DType::f32;
            }
        if (const Verdict verdict = check_gemm(plain); !verdict) return verdict;
        const Gemm g = gemm_of(problem);
        if (g.batches != 1 || g.transpose_a || g.alpha != 1)
            return Verdict::no(
                "it needs a single product without scaling whose first input is not transposed");
        if (g.k % 8 != 0 || g.k == 0)
            return Verdict::no(cat("it needs a positive multiple of 8 as K, not ", g.k));
        constexpr double limit = 2147000000.0;
        if (static_cast<double>(g.m) * static_cast<double>(g.k) > limit ||
            static_cast<double>(g.n) * static_cast<double>(g.k) > limit ||
            static_cast<double>(g.m) * static_cast<double>(g.n) > limit)
            return Verdict::no("a matrix has too many elements for its 32-bit indices");
        return Verdict::yes();
    }
    bool computes_in(Precision precision) const override { return precision != Precision::fp32; }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        LayoutChoice choice;
        choice.inputs.assign(problem.inputs.size(), Layout::plain());
        choice.outputs.assign(1, Layout::plain());
        const Gemm g = gemm_of(problem);
        choice.inputs[1] =
            Layout::packed(cat("matmul.wgmma_half:", kind_of(problem.inputs[0].dtype), ';', g.n,
                               'x', g.k, g.transpose_b ? 't' : 'n'),
                           static_cast<std::uint64_t>(Packed(g).bytes));
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
        // As the convolutions' model, with two work-groups on a compute unit.
        constexpr double h200_units = 132;
        const Gemm g = gemm_of(problem);
        const std::int64_t columns = tuning.at("columns"), splits = tuning.at("splits");
        const double step = 2.0 * static_cast<double>(rows * columns * depth) /
                            ((columns == 64 ? 300e12 : 430e12) / h200_units) * unit_pace(unit_);
        const double each =
            static_cast<double>(ceil_div(g.m, rows) * ceil_div(g.n, columns) * splits) /
            std::max(device.compute_units, 1);
        const double rounds =
            each <= 1 ? 1.4
                      : 2 * static_cast<double>(static_cast<std::int64_t>((each + 1.999) / 2));
        const double seconds =
            rounds * step * (static_cast<double>(ceil_div(Packed(g).steps, splits)) + 3.0) +
            device.launch_us * 1e-6;
        const double sum = splits <= 1 ? 0
                                       : 2.0 * g.c_elements() * 4.0 * static_cast<double>(splits) /
                                                 (std::max(device.gbytes_per_s, 1.0) * 0.7e9) +
                                             device.launch_us * 1e-6;
        return std::max(seconds, roofline_seconds(device, problem, 0, 1.0, 0.6)) + sum;
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        // Narrow tiles where even so few work-groups come about; parts of K until there are two on
        // every compute unit.
        const Gemm g = gemm_of(problem);
        const std::int64_t wanted = 2 * std::max(device.compute_units, 1);
        const std::int64_t columns = ceil_div(g.m, rows) * ceil_div(g.n, 2 * depth) >= wanted &&
                                             most_stages(device, 128) >= 2
                                         ? 128
                                         : 64;
        const std::int64_t tiles = ceil_div(g.m, rows) * ceil_div(g.n, columns);
        const std::int64_t splits = std::clamp<std::int64_t>(
            wanted / tiles, 1, std::max<std::int64_t>(1, Packed(g).steps / 4));
        return {{"columns", columns}, {"splits", splits}, {"stages", columns == 64 ? 4 : 3}};
    }
    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        const std::int64_t splits = default_tuning(device, problem).at("splits");
        TuneSpace space{{"columns", {64}}, {"splits", {splits, splits * 2}}, {"stages", {3, 4, 6}}};
        if (most_stages(device, 128) >= 2) space["columns"].push_back(128);
        if (splits > 1) space["splits"].push_back(ceil_div(splits, 2));
        return space;
    }

    std::vector<std::string> sources() const override {
        return {product_path, pack_path, sum_path, "common/half_store.clh",
                "common/matrix_half.clh"};
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Gemm g = gemm_of(problem);
        const Packed packed(g);
        const std::int64_t columns = tuning.at("columns"), splits = tuning.at("splits");
        const bool split = splits > 1;
        const int lanes = g.n % 4 == 0 ? 4 : 1;
        const std::int64_t part = std::max<std::int64_t>(1, ceil_div(packed.steps, splits));
        const std::int64_t tiles_m = ceil_div(g.m, rows), tiles_n = ceil_div(g.n, columns);
        const std::string y_kind = cat(" -DY_KIND=", kind_of(problem.outputs[0].dtype));
        const std::string options =
            cat("-DKIND=", kind_of(problem.inputs[0].dtype), " -DSTAGES=",
                std::min({tuning.at("stages"), std::max<std::int64_t>(2, part + 1),
                          most_stages(context.traits(), columns)}),
                " -DNEAR=0 -DMG=1 -DBN=", columns, split ? " -DY_KIND=0" : y_kind,
                " -DKERNEL_H=1 -DKERNEL_W=1 -DDIRECT=1 -DCHANNEL_TAIL=", g.k % depth != 0,
                " -DY_FOURS=", lanes == 4, unit_option(unit_));
        const std::string source = kernel_source(product_path);
        const auto program = context.build({product_path,
                                            split ? with_epilogue(source, Epilogue{}, lanes)
                                                  : with_epilogue(source, problem, lanes),
                                            options});
        KernelCall call(program, "wgmma_half", group_range(tiles_m * tiles_n * splits, items));
        const bool bias = !split && g.bias >= 0;
        call.tensor("x", g.a, 2).tensor_at("w", g.b, 0, 1).tensor("bias", bias ? g.bias : g.b);
        call.tensor("y", split ? g.workspace : g.c, split ? 4 : size_of(problem.outputs[0].dtype));
        const std::pair<const char*, std::int64_t> sizes[] = {{"has_bias", bias},
                                                              {"pixels", g.m},
                                                              {"channels_in", g.k},
                                                              {"channels_out", g.n},
                                                              {"x_h", 1},
                                                              {"x_w", g.m},
                                                              {"y_h", 1},
                                                              {"y_w", g.m},
                                                              {"out_h", 1},
                                                              {"out_w", g.m},
                                                              {"row0", 0},
                                                              {"column0", 0},
                                                              {"row_step", 1},
                                                              {"column_step", 1},
                                                              {"stride_h", 1},
                                                              {"stride_w", 1},
                                                              {"pad_h", 0},
                                                              {"pad_w", 0},
                                                              {"dilate_h", 1},
                                                              {"dilate_w", 1},
                                                              {"steps", packed.steps},
                                                              {"steps_part", part},
                                                              {"tiles_m", tiles_m},
                                                              {"tiles_n", tiles_n},
                                                              {"row_blocks", packed.blocks}};
        for (const auto& [parameter, value] : sizes)
            call.scalar(parameter, static_cast<std::int32_t>(value));
        call.scalar("blocks_at", packed.blocks_at);
        call.scalar("part_stride", split ? g.m * g.n : std::int64_t(0));
        if (!split) bind_epilogue(call, problem);
        call.check();
        auto launch = std::make_unique<KernelLaunch>();
        launch->add(std::move(call));
        if (!split) return launch;

        KernelCall sum(
            context.build({sum_path, with_epilogue(kernel_source(sum_path), problem, lanes),
                           cat("-DLANES=", lanes, y_kind)}),
            "wgmma_half_sum", line_range(context.traits(), g.m * g.n / lanes));
        sum.tensor("parts", g.workspace).tensor("bias", g.bias >= 0 ? g.bias : g.workspace);
        sum.tensor("y", g.c, size_of(problem.outputs[0].dtype));
        sum.scalar("count", g.m * g.n).scalar("splits", static_cast<std::int32_t>(splits));
        sum.scalar("has_bias", std::int32_t(g.bias >= 0));
        sum.scalar("channels", static_cast<std::int32_t>(g.n));
        bind_epilogue(sum, problem);
        sum.check();
        launch->add(std::move(sum));
        return launch;
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        const Gemm g = gemm_of(problem);
        const Packed packed(g);
        std::int64_t room = 1024;
        while (room < packed.steps * depth) room *= 2;
        const auto program = context.build(
            {pack_path, kernel_source(pack_path),
             cat("-DKIND=", kind_of(problem.inputs[0].dtype), " -DROOM=", room > 8192 ? 0 : room)});
        KernelCall call(program, "wgmma_half_pack", group_range(packed.blocks * depth, items));
        call.tensor("weight", 0).tensor_at("packed", 1, 0, 1);
        const std::pair<const char*, std::int64_t> sizes[] = {{"group_out", g.n},
                                                              {"group_in", g.k},
                                                              {"depth", packed.steps * depth},
                                                              {"block", depth},
                                                              {"steps", packed.steps},
                                                              {"kernel_h", 1},
                                                              {"kernel_w", 1},
                                                              {"weight_w", 1},
                                                              {"h0", 0},
                                                              {"h_step", 1},
                                                              {"w0", 0},
                                                              {"w_step", 1}};
        for (const auto& [parameter, value] : sizes)
            call.scalar(parameter, static_cast<std::int32_t>(value));
        call.scalar("weight_out", g.transpose_b ? g.k : std::int64_t(1));
        call.scalar("weight_in", g.transpose_b ? std::int64_t(1) : g.n);
        call.scalar("blocks_at", packed.blocks_at);
        call.check();
        auto launch = std::make_unique<KernelLaunch>();
        launch->add(std::move(call));
        return launch;
    }

  private:
    /// Steps of a tile with so many columns in local memory; none where its sums do not fit.
    std::int64_t most_stages(const Traits& device, std::int64_t columns) const {
        const std::int64_t bytes = unit_local_bytes(unit_, device) - rows * 12;
        return rows * (columns + 8) * 4 > bytes ? 0 : bytes / ((rows + columns) * 128);
    }

    MatrixUnit unit_;
};

}  // namespace

void add_wgmma_half(EngineRegistry& engines, const std::string& op) {
    for (const MatrixUnit unit : matrix_units) engines.add(std::make_unique<WgmmaHalf>(op, unit));
}

}  // namespace dlprim::matmul
