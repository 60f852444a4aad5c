// SPDX-License-Identifier: MIT
// conv2d_backward_filter.wgmma_split (mma_split): the filter gradient over plain images on tensor
// cores, in exact float or in tf32 (kernels/conv2d/split_filter.cl). Long sums are divided between
// work-groups, which write parts to the workspace. The parts are added in order.
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/matrix/model.hpp"
#include "engine/matrix/split_products.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/gpu.hpp"
#include "ops/conv2d/matrix/split.hpp"

#include <algorithm>

namespace dlprim::conv2d {

namespace {

constexpr const char* source_path = "conv2d/split_filter.cl";

SplitSize size_of(const Geometry& g, int products, MatrixUnit unit) {
    return {g.out, g.in * g.kh * g.kw, ceil_div(g.n * g.oh * g.ow, split_depth), products,
            unit_pace(unit)};
}

class SplitFilterEngine : public ConvolutionEngine {
  public:
    explicit SplitFilterEngine(MatrixUnit unit)
        : ConvolutionEngine(backward_filter_type, cat(name_of(unit), "_split")), unit_(unit) {}

    std::vector<std::string> sources() const override { return {source_path, parts_sum_source}; }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = split_verdict(unit_, device, problem); !verdict) return verdict;
        return split_rows_verdict(most_rows(device, problem));
    }
    bool computes_in(Precision) const override { return true; }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        return split_bytes(problem, parts(problem, tuning).count);
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        // The kernel splits both operands while it multiplies. This takes longer than with weights
        // that are split beforehand, and with one product in place of three the unit waits for the
        // taps to be gathered.
        const SplitSize size = size_of(device, problem);
        const Geometry g = Geometry::of(problem);
        const double factor = size.products == 1 && g.kh * g.kw > 1 ? 1.9 : 1.5;
        const double seconds =
            factor * split_parts_seconds(device, size, wm_of(tuning), parts(problem, tuning).count,
                                         output_bytes(problem)) +
            device.launch_us * 1e-6;
        return std::max(seconds, roofline_seconds(device, problem, 0, 1.0, 0.6));
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        return choose_split(device, size_of(device, problem), output_bytes(problem), 256e6);
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        TuneSpace space = split_tune_space(default_tuning(device, problem));
        if (most_rows(device, problem) > 1) space["rows"] = {split_rows, 2 * split_rows};
        return space;
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Geometry g = flattened(problem);
        const SplitSize size = conv2d::size_of(g, split_products(problem), unit_);
        const std::int64_t wm = wm_of(tuning);
        const Parts part = parts(problem, tuning);
        const bool split = part.count > 1;
        const std::string options =
            define("WM", wm) + define("PRODUCTS", size.products) + define("KERNEL_H", g.kh) +
            define("KERNEL_W", g.kw) + define("TAP_OUTER", g.in % 16 == 0) +
            define("ROW_TAIL", g.out % (64 * wm) != 0) + define("H", g.h) + define("W", g.w) +
            define("OH", g.oh) + define("OW", g.ow) + define("STRIDE_H", g.sh) +
            define("STRIDE_W", g.sw) + unit_option(unit_);
        const auto program = context.build(
            {source_path,
             with_epilogue(kernel_source(source_path), split ? Epilogue{} : problem.epilogue),
             options});
        KernelCall call(program, "split_filter",
                        group_range(size.tiles_m(wm) * size.tiles_n() * part.count, split_items));
        const int result = static_cast<int>(problem.inputs.size());
        call.tensor("x", 0).tensor("dy", 1).tensor("dweight", split ? result + 1 : result);
        bind_filter(call, g, size.steps, part.steps, size.tiles_m(wm), size.tiles_n());
        call.scalar("part_stride", split ? problem.outputs[0].shape.numel() : std::int64_t(0));
        if (!split) bind_epilogue(call, problem.epilogue);
        auto launch = std::make_unique<KernelLaunch>();
        launch->add(std::move(call));
        if (split) add_split_sum(*launch, context, problem, part.count);
        return launch;
    }

  private:
    std::int64_t most_rows(const Traits& device, const Problem& problem) const {
        // Behind two stages, local memory holds scale factors and the arrays `patches` and `spots`.
        return most_split_rows(unit_, device, split_products(problem), 2,
                               128 + split_columns * 8 + 2 * split_depth * 16);
    }
    SplitSize size_of(const Traits& device, const Problem& problem) const {
        SplitSize size = conv2d::size_of(Geometry::of(problem), split_products(problem), unit_);
        size.most_wm = most_rows(device, problem);
        return size;
    }

    struct Parts {
        std::int64_t count, steps;
    };
    Parts parts(const Problem& problem, const Tuning& tuning) const {
        const std::int64_t steps =
            conv2d::size_of(Geometry::of(problem), split_products(problem), unit_).steps;
        const std::int64_t splits = std::max<std::int64_t>(tuning.at("splits"), 1);
        const std::int64_t each = std::max<std::int64_t>(1, ceil_div(steps, splits));
        return {std::max<std::int64_t>(1, ceil_div(steps, each)), each};
    }

    MatrixUnit unit_;
};

}  // namespace

void add_split_filter_engine(EngineRegistry& registry) {
    for (const MatrixUnit unit : matrix_units)
        registry.add(std::make_unique<SplitFilterEngine>(unit));
}

}  // namespace dlprim::conv2d
