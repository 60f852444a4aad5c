// SPDX-License-Identifier: MIT
// conv2d.wgmma_split and conv2d_backward_data.wgmma_split (mma_split): convolution and its data
// gradient over plain images on tensor cores, in exact float or in tf32 (kernels/conv2d/split.cl).
// A data gradient with a stride is one product per phase of the stride. If a problem has few tiles,
// K is split into parts.
#include "ops/conv2d/matrix/split.hpp"

#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/matrix/model.hpp"
#include "engine/matrix/split_products.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/gpu.hpp"
#include "ops/conv2d/matrix/split_weights.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::conv2d {

namespace {

constexpr const char* source_path = "conv2d/split.cl";

// Whether each step of K belongs to a single tap: the channels fill whole steps, or there is only
// one tap.
bool blocked(const DenseJob& job) {
    return job.group_in % split_depth == 0 || job.kernel_h * job.kernel_w == 1;
}

// If a step has many taps, the kernel looks up each element in a table, and the step takes twice as
// long.
SplitSize size_of(const DenseJob& job, int products, MatrixUnit unit) {
    return {job.group_out, job.n * job.out_h * job.out_w,
            ceil_div(job.group_in * job.kernel_h * job.kernel_w, split_depth), products,
            (blocked(job) ? 1.0 : 2.0) * unit_pace(unit)};
}

class SplitEngine : public ConvolutionEngine {
  public:
    SplitEngine(MatrixUnit unit, const char* op)
        : ConvolutionEngine(op, cat(name_of(unit), "_split")), unit_(unit) {}

    std::vector<std::string> sources() const override {
        return {source_path, split_weights_source, parts_sum_source, phase_fill_source};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = split_verdict(unit_, device, problem); !verdict) return verdict;
        return split_rows_verdict(most_rows(device, problem));
    }
    bool computes_in(Precision) const override { return true; }

    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        // There is one choice per tile, since weights are packed for a tile. The preferred choice
        // is first.
        const std::int64_t best =
            wm_of(choose_split(device, largest(device, problem), output_bytes(problem), 64e6));
        if (most_rows(device, problem) < 2) return {choice_of(problem, best)};
        return {choice_of(problem, best), choice_of(problem, 3 - best)};
    }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        return split_bytes(problem, tuning.at("splits"));
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const std::int64_t wm = split_weight_rows(problem);
        const std::int64_t splits = tuning.at("splits");
        return jobs_seconds(device, problem, splits, 0.6, [&](const DenseJob& job) {
            return split_seconds(device, size_of(job, split_products(problem), unit_), wm, splits);
        });
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        // The layout of the weights decides the tile. The job with the most work decides the number
        // of parts.
        const std::int64_t wm = split_weight_rows(problem);
        return choose_split(device, largest(device, problem), output_bytes(problem), 64e6, wm);
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        return split_tune_space(default_tuning(device, problem));
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        auto launch = std::make_unique<KernelLaunch>();
        const std::int64_t wm = split_weight_rows(problem);
        std::int64_t at = 0;
        const bool fill = tuning.at("splits") == 1 && has_empty_phase(jobs_of(problem));
        if (fill) add_phase_fill(*launch, context, problem);
        for (const DenseJob& job : jobs_of(problem)) {
            if (!fill || !is_empty(job))
                add_call(*launch, context, problem, tuning.at("splits"), wm, job, at);
            at += SplitWeights(job, wm, split_products(problem), blocked(job)).bytes;
        }
        if (tuning.at("splits") > 1) add_split_sum(*launch, context, problem, tuning.at("splits"));
        return launch;
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        return pack_split_weights(context, all_weights(problem, split_weight_rows(problem)));
    }

  private:
    std::int64_t most_rows(const Traits& device, const Problem& problem) const {
        // Behind two stages, local memory holds the largest values, scale factors and the array
        // `places`.
        return most_split_rows(unit_, device, split_products(problem), 2, split_columns * 7 * 4);
    }
    SplitSize largest(const Traits& device, const Problem& problem) const {
        SplitSize most = largest_size(problem, [&](const DenseJob& job) {
            return size_of(job, split_products(problem), unit_);
        });
        most.most_wm = most_rows(device, problem);
        return most;
    }

    std::vector<SplitWeights> all_weights(const Problem& problem, std::int64_t wm) const {
        std::vector<SplitWeights> all;
        for (const DenseJob& job : jobs_of(problem))
            all.emplace_back(job, wm, split_products(problem), blocked(job));
        return all;
    }
    LayoutChoice choice_of(const Problem& problem, std::int64_t wm) const {
        return split_weights_choice(problem, all_weights(problem, wm));
    }

    void add_call(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                  std::int64_t splits, std::int64_t wm, const DenseJob& job,
                  std::int64_t weight_bytes) const {
        const int products = split_products(problem);
        const SplitWeights packed(job, wm, products, blocked(job));
        const SplitSize size = size_of(job, products, unit_);
        const bool split = splits > 1;
        const bool quads = fills_y(job) && job.out_h * job.out_w % 4 == 0;
        const std::string options = define("WM", wm) + define("PRODUCTS", products) +
                                    define("Y_QUADS", quads) +
                                    define("KERNEL_H", std::max<std::int64_t>(job.kernel_h, 1)) +
                                    define("KERNEL_W", std::max<std::int64_t>(job.kernel_w, 1)) +
                                    define("BLOCKED", blocked(job)) +
                                    define("CHANNEL_TAIL", job.group_in % split_depth != 0) +
                                    define("PLANE", job.x_h * job.x_w) + unit_option(unit_);
        const auto program = context.build(
            {source_path,
             with_epilogue(kernel_source(source_path), split ? Epilogue{} : problem.epilogue),
             options});
        KernelCall call(program, "split_product",
                        group_range(size.tiles_m(wm) * size.tiles_n() * splits, split_items));
        const int result = static_cast<int>(problem.inputs.size());
        const bool bias = !backward_ && !split && has_bias(problem);
        call.tensor("x", 0).tensor_at("w", 1, static_cast<std::uint64_t>(weight_bytes), 1);
        call.tensor("bias", bias ? 2 : 1).tensor("y", split ? result + 1 : result);
        call.sizes({{"has_bias", bias},
                    {"pixels", size.columns},
                    {"channels_in", job.group_in},
                    {"channels_out", job.group_out},
                    {"steps", size.steps},
                    {"steps_part", std::max<std::int64_t>(1, ceil_div(size.steps, splits))},
                    {"tiles_m", size.tiles_m(wm)},
                    {"tiles_n", size.tiles_n()}});
        bind_images(call, job);
        call.scalar("table_at", packed.table_at).scalar("planes_at", packed.planes_at);
        call.scalar("part_stride", split ? problem.outputs[0].shape.numel() : std::int64_t(0));
        if (!split) bind_epilogue(call, problem.epilogue);
        launch.add(std::move(call));
    }

    MatrixUnit unit_;
};

}  // namespace

Verdict split_verdict(MatrixUnit unit, const Traits& device, const Problem& problem,
                      std::initializer_list<DType> types) {
    if (Verdict verdict = unit_verdict(unit, device, types); !verdict) return verdict;
    if (Verdict verdict = index_verdict(problem); !verdict) return verdict;
    for (const auto* operands : {&problem.inputs, &problem.outputs})
        for (const Operand& operand : *operands)
            if (operand.shape.numel() >= (std::int64_t(1) << 31) - 65536)
                return Verdict::no("a tensor has too many elements for its 32-bit indices");
    const Geometry g = Geometry::of(problem);
    if (g.groups != 1) return Verdict::no("it does not support grouped convolutions");
    if (g.kh > 15 || g.kw > 15)
        return Verdict::no(cat("it supports kernels of at most 15 x 15, not ", g.kh, " x ", g.kw));
    return Verdict::yes();
}

void add_split_engines(EngineRegistry& registry) {
    for (const MatrixUnit unit : matrix_units)
        for (const char* op : {forward_type, backward_data_type})
            registry.add(std::make_unique<SplitEngine>(unit, op));
}

}  // namespace dlprim::conv2d
