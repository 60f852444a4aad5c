// SPDX-License-Identifier: MIT
// conv2d.wgmma_half and conv2d_backward_data.wgmma_half (mma_half): convolution and its data
// gradient on tensor cores, over images in half or bfloat16 whose channels are last
// (kernels/matrix/stored16.cl). Weights are float, and are packed to the images' type beforehand. A
// data gradient with a stride is one product per phase of the stride. If a problem has few tiles, K
// is split into parts.
#include "ops/conv2d/matrix/stored16.hpp"

#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/matrix/model.hpp"
#include "engine/matrix/named_tile.hpp"
#include "engine/matrix/stored16_product.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/gpu.hpp"
#include "ops/conv2d/matrix/split.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::conv2d {

namespace {

// Rows are pixels, and columns are output channels.
std::vector<Stored16Tile> tiles(MatrixUnit unit, const Traits& device) {
    return stored16_tiles(h200::stored16_rates, unit, device, {.row_bytes = 12, .sums = true});
}

Stored16Size size_of(const DenseJob& job) {
    return {job.n * job.out_h * job.out_w, job.group_out,
            ceil_div(job.group_in, stored16_depth) * job.kernel_h * job.kernel_w};
}

bool has_taps(const Problem& problem) {
    for (const DenseJob& job : jobs_of(problem))
        if (job.kernel_h * job.kernel_w > 1) return true;
    return false;
}

class Stored16Engine : public ConvolutionEngine {
  public:
    Stored16Engine(MatrixUnit unit, const char* op)
        : ConvolutionEngine(op, cat(name_of(unit), "_half")), unit_(unit) {}

    std::vector<std::string> sources() const override { return stored16_product_sources(); }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        const DType dtype = problem.inputs[0].dtype;
        if (stored16_kind(dtype) == 0)
            return Verdict::no(cat("it needs images in half or bfloat16, not ", name_of(dtype)));
        if (problem.inputs[0].shape[1] % 8 != 0)
            return Verdict::no(cat("it needs a number of channels that is a multiple of 8, not ",
                                   problem.inputs[0].shape[1]));
        if (!stored16_precision(problem, dtype))
            return Verdict::no(
                "it rounds weights to the type of the images, which the precision does not "
                "allow");
        if (Verdict verdict = stored16_storage_verdict(problem, {0}, true); !verdict)
            return verdict;
        if (Verdict verdict = stored16_size_verdict(unit_, device, problem, dtype); !verdict)
            return verdict;
        return stored16_tiles_verdict(tiles(unit_, device));
    }
    bool computes_in(Precision precision) const override { return precision != Precision::fp32; }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        LayoutChoice choice = channels_last_choice(problem);
        choice.inputs[1] =
            stored16_weights_layout(jobs_of(problem), problem.inputs[0].dtype, stored16_depth);
        return {choice};
    }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        return split_bytes(problem, tuning.at("splits"));
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const std::int64_t splits = tuning.at("splits");
        return jobs_seconds(device, problem, splits, 0.6, [&](const DenseJob& job) {
            return stored16_seconds(device, tile_of(device, tuning), size_of(job), splits);
        });
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        return choose_stored16(device, tiles(unit_, device), largest_size(problem, size_of),
                               output_bytes(problem), 64e6, has_taps(problem));
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        return stored16_tune_space(tiles(unit_, device), largest_size(problem, size_of),
                                   default_tuning(device, problem), has_taps(problem));
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        auto launch = std::make_unique<KernelLaunch>();
        std::int64_t at = 0;
        for (const DenseJob& job : jobs_of(problem)) {
            add_product(*launch, context, problem, tuning, job, at);
            at += Stored16Weights(source_of(job), stored16_depth).bytes;
        }
        if (tuning.at("splits") > 1)
            add_stored16_sum(*launch, context, problem, tuning.at("splits"),
                             problem.outputs[0].shape[1], bias_of(problem), 256);
        return launch;
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        return pack_stored16_weights(context, jobs_of(problem), problem.inputs[0].dtype,
                                     stored16_depth);
    }

  private:
    int bias_of(const Problem& problem) const { return !backward_ && has_bias(problem) ? 2 : -1; }

    void add_product(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                     const Tuning& tuning, const DenseJob& job, std::int64_t weights_at) const {
        const Stored16Tile tile = tile_of(context.traits(), tuning);
        const std::int64_t splits = tuning.at("splits");
        add_stored16_product(launch, context, problem,
                             {.images = job,
                              .pixels = job.n * job.out_h * job.out_w,
                              .channels_in = job.group_in,
                              .channels_out = job.group_out,
                              .weights = Stored16Weights(source_of(job), stored16_depth),
                              .weights_at = weights_at,
                              .splits = splits,
                              .bias = splits > 1 ? -1 : bias_of(problem),
                              .rows = tile.rows,
                              .columns = tile.columns,
                              .stages = stored16_stages(tile, tuning),
                              .near = tuning.at("near") != 0,
                              .unit = unit_});
    }

    Stored16Tile tile_of(const Traits& device, const Tuning& tuning) const {
        return named_tile(tiles(unit_, device), tuning);
    }

    MatrixUnit unit_;
};

}  // namespace

Verdict stored16_size_verdict(MatrixUnit unit, const Traits& device, const Problem& problem,
                              DType product) {
    Problem sizes = problem;
    for (auto* operands : {&sizes.inputs, &sizes.outputs})
        for (Operand& operand : *operands) operand.dtype = DType::f32;
    return split_verdict(unit, device, sizes, {product, problem.outputs[0].dtype});
}

WeightSource source_of(const DenseJob& job) {
    return {job.group_out, job.group_in, job.kernel_h, job.kernel_w, job.weight_out, job.weight_in,
            job.weight_w,  job.h0,       job.h_step,   job.w0,       job.w_step};
}

Layout stored16_weights_layout(const std::vector<DenseJob>& jobs, DType dtype, std::int64_t block) {
    std::string tag = cat("conv2d.wgmma_half:", stored16_kind(dtype), 'b', block, ';');
    std::int64_t bytes = 0;
    for (const DenseJob& job : jobs) {
        bytes += Stored16Weights(source_of(job), block).bytes;
        tag += cat(job.group_in, 'i', job.group_out, 'o', job.weight_out, 'h', job.kernel_h, '@',
                   job.h0, '/', job.h_step, 'w', job.kernel_w, '@', job.w0, '/', job.w_step, ';');
    }
    return Layout::packed(tag, static_cast<std::uint64_t>(bytes));
}

std::unique_ptr<Launch> pack_stored16_weights(ContextImpl& context,
                                              const std::vector<DenseJob>& jobs, DType dtype,
                                              std::int64_t block) {
    auto launch = std::make_unique<KernelLaunch>();
    std::int64_t at = 0;
    for (const DenseJob& job : jobs) {
        add_stored16_packing(*launch, context, source_of(job), dtype, block, at);
        at += Stored16Weights(source_of(job), block).bytes;
    }
    return launch;
}

void add_stored16_engines(EngineRegistry& registry) {
    for (const MatrixUnit unit : matrix_units)
        for (const char* op : {forward_type, backward_data_type})
            registry.add(std::make_unique<Stored16Engine>(unit, op));
}

}  // namespace dlprim::conv2d
