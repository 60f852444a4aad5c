// SPDX-License-Identifier: MIT
// conv2d.implicit_gemm and conv2d_backward_data.implicit_gemm: convolution and its data gradient on
// GPUs over plain images, as matrix products whose right side is gathered during the product
// (kernels/conv2d/implicit_gemm.cl). A data gradient with a stride is one product per phase of the
// stride, so that no zero is multiplied. If a problem has few tiles, K is split into parts.
//
// conv2d.subgroup and conv2d_backward_data.subgroup compute the same with sub-groups and without
// local memory (kernels/conv2d/subgroup.cl). They read the same packed weights.
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/matrix/model.hpp"
#include "engine/subgroup.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/gpu.hpp"

#include <algorithm>

namespace dlprim::conv2d {

namespace {

constexpr const char* source_path = "conv2d/implicit_gemm.cl";
constexpr const char* subgroup_path = "conv2d/subgroup.cl";
constexpr const char* pack_path = "conv2d/implicit_gemm_pack.cl";

// The layout of K, and of a job's packed weights.
struct Depth {
    std::int64_t taps, block;  ///< channels whose taps are contiguous
    std::int64_t steps;        ///< of gemm_depth each
    std::int64_t row;          ///< weights of one k: output channels, rounded up
    bool flat;
    std::int64_t elements(const DenseJob& job) const {
        return job.groups * steps * gemm_depth * row;
    }
};

Depth depth_of(const DenseJob& job) {
    Depth d{};
    d.taps = job.kernel_h * job.kernel_w;
    const std::int64_t flat_steps = ceil_div(job.group_in * d.taps, gemm_depth);
    const std::int64_t blocked_steps = ceil_div(job.group_in, gemm_depth) * d.taps;
    d.flat = job.group_in % gemm_depth != 0 && flat_steps * 8 < blocked_steps * 7;
    d.block = d.flat ? job.group_in : gemm_depth;
    d.steps = d.flat ? flat_steps : blocked_steps;
    d.row = ceil_div(job.group_out, 4) * 4;
    return d;
}

class ImplicitGemm : public ConvolutionEngine {
  public:
    ImplicitGemm(const char* op, bool subgroups)
        : ConvolutionEngine(op, subgroups ? "subgroup" : "implicit_gemm"), subgroups_(subgroups) {}

    std::vector<std::string> sources() const override {
        return {subgroups_ ? subgroup_path : source_path, pack_path, parts_sum_source,
                phase_fill_source};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (!subgroups_) return implicit_gemm_verdict(device, problem);
        if (Verdict verdict = subgroup_verdict(device); !verdict) return verdict;
        return narrow_index_verdict(problem);
    }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        LayoutChoice choice = LayoutChoice::all(problem);
        std::string tag = "conv2d.implicit_gemm:";
        std::int64_t elements = 0;
        for (const DenseJob& job : jobs_of(problem)) {
            elements += depth_of(job).elements(job);
            tag += cat(job.groups, 'g', job.group_in, 'i', job.group_out, 'o', job.weight_out, 'h',
                       job.kernel_h, '@', job.h0, '/', job.h_step, 'w', job.kernel_w, '@', job.w0,
                       '/', job.w_step, ';');
        }
        choice.inputs[1] = Layout::packed(
            tag, static_cast<std::uint64_t>(std::max<std::int64_t>(elements, 1)) * 4);
        return {choice};
    }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        return split_bytes(problem, tuning.at("splits"));
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const TileShape tile = shape_of(device, tuning);
        const std::int64_t splits = tuning.at("splits");
        // Reads and writes of small tiles reach only a third of the bandwidth.
        return jobs_seconds(device, problem, splits, 0.35, [&](const DenseJob& job) {
            return gemm_seconds(device, tile, size_of(job), splits);
        });
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        return choose_gemm(device, tiles(device), largest_size(problem, size_of), 128,
                           std::int64_t(1) << 40, output_bytes(problem), 64e6);
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        return gemm_tune_space(tiles(device), default_tuning(device, problem));
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        auto launch = std::make_unique<KernelLaunch>();
        std::int64_t weight = 0;
        const bool fill = tuning.at("splits") == 1 && has_empty_phase(jobs_of(problem));
        if (fill) add_phase_fill(*launch, context, problem);
        for (const DenseJob& job : jobs_of(problem)) {
            if (!fill || !is_empty(job))
                add_job_call(*launch, context, problem, tuning, job,
                             static_cast<std::uint64_t>(weight) * 4);
            weight += depth_of(job).elements(job);
        }
        if (tuning.at("splits") > 1) add_split_sum(*launch, context, problem, tuning.at("splits"));
        return launch;
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        auto launch = std::make_unique<KernelLaunch>();
        std::int64_t at = 0;
        const auto program = context.build({pack_path, kernel_source(pack_path), ""});
        for (const DenseJob& job : jobs_of(problem)) {
            const Depth d = depth_of(job);
            const std::int64_t count = d.elements(job);
            if (count == 0) continue;
            KernelCall call(program, "implicit_gemm_pack", rounded_range(context.traits(), count));
            call.tensor("weight", 0).tensor_at("packed", 1, static_cast<std::uint64_t>(at) * 4);
            call.sizes({{"group_out", job.group_out},
                        {"group_in", job.group_in},
                        {"row", d.row},
                        {"depth", d.steps * gemm_depth},
                        {"block", d.block},
                        {"kernel_h", job.kernel_h},
                        {"kernel_w", job.kernel_w},
                        {"weight_w", job.weight_w},
                        {"h0", job.h0},
                        {"h_step", job.h_step},
                        {"w0", job.w0},
                        {"w_step", job.w_step}});
            call.scalar("count", count).scalar("weight_group", job.weight_group);
            call.scalar("weight_out", job.weight_out).scalar("weight_in", job.weight_in);
            launch->add(std::move(call));
            at += count;
        }
        return launch;
    }

  private:
    TileShape shape_of(const Traits& device, const Tuning& tuning) const {
        return subgroups_ ? shape_of(device, subgroup_tile(device, tuning))
                          : gemm_tile(tuning).shape();
    }
    static TileShape shape_of(const Traits& device, const SubgroupTile& tile) {
        return {tile.bm(), tile.bn(device), tile.threads(device),
                subgroup_share(device, tile, false)};
    }
    TileChoice tiles(const Traits& device) const {
        if (!subgroups_) return gemm_tiles(device);
        TileChoice fitting;
        for (const SubgroupTile& tile : subgroup_tiles(device))
            fitting.push_back(shape_of(device, tile));
        return fitting;
    }
    std::string tile_options(const Traits& device, const Tuning& tuning) const {
        if (!subgroups_) return gemm_tile_options(device, gemm_tile(tuning));
        std::string options = define("BK", gemm_depth);
        for (const auto& [name, value] : subgroup_defines(device, subgroup_tile(device, tuning)))
            options += define(name, value);
        return options;
    }

    static GemmSize size_of(const DenseJob& job) {
        return {job.group_out, job.n * job.out_h * job.out_w, depth_of(job).steps * gemm_depth,
                job.groups};
    }

    void add_job_call(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                      const Tuning& tuning, const DenseJob& job, std::uint64_t weight_bytes) const {
        const TileShape tile = shape_of(context.traits(), tuning);
        const char* const source = subgroups_ ? subgroup_path : source_path;
        const std::int64_t splits = tuning.at("splits");
        const Depth d = depth_of(job);
        const bool split = splits > 1;
        const bool dense = fills_y(job);
        const bool quads = job.out_h * job.out_w % 4 == 0;
        const bool direct = d.taps == 1 && !d.flat && job.stride_h == 1 && job.stride_w == 1 &&
                            job.pad_h == 0 && job.pad_w == 0 && job.out_h == job.x_h &&
                            job.out_w == job.x_w;
        const std::string options =
            tile_options(context.traits(), tuning) +
            define("KERNEL_H", std::max<std::int64_t>(job.kernel_h, 1)) +
            define("KERNEL_W", std::max<std::int64_t>(job.kernel_w, 1)) +
            define("FLAT_CHANNELS", d.flat ? job.group_in : 0) +
            define("CHANNEL_TAIL", job.group_in % gemm_depth != 0) + define("Y_DENSE", dense) +
            (subgroups_ ? define("DIRECT", direct)
                        : define("X_QUADS", direct && quads) + define("Y_QUADS", dense && quads)) +
            image_options(problem, split);
        const auto program = context.build({source,
                                            split ? with_epilogue(kernel_source(source), Epilogue{})
                                                  : with_epilogue(kernel_source(source), problem),
                                            options});
        const std::int64_t pixels = job.n * job.out_h * job.out_w;
        const std::int64_t tiles_m = ceil_div(job.group_out, tile.rows);
        const std::int64_t tiles_n = ceil_div(pixels, tile.columns);
        KernelCall call(program, subgroups_ ? "conv2d_subgroup" : "implicit_gemm",
                        group_range(tiles_m * tiles_n * job.groups * splits, tile.threads));
        const int result = static_cast<int>(problem.inputs.size());
        const bool bias = !backward_ && !split && has_bias(problem);
        call.tensor("x", 0, dlprim::size_of(problem.inputs[0].dtype))
            .tensor_at("w", 1, weight_bytes)
            .tensor("bias", bias ? 2 : 1);
        call.tensor("y", split ? result + 1 : result,
                    split ? 4 : dlprim::size_of(problem.outputs[0].dtype));
        call.sizes({{"has_bias", bias},
                    {"pixels", pixels},
                    {"groups", job.groups},
                    {"group_in", job.group_in},
                    {"group_out", job.group_out},
                    {"w_row", d.row},
                    {"steps", d.steps},
                    {"steps_part", std::max<std::int64_t>(1, ceil_div(d.steps, splits))},
                    {"tiles_m", tiles_m},
                    {"tiles_n", tiles_n}});
        bind_images(call, job);
        call.scalar("part_stride", split ? problem.outputs[0].shape.numel() : std::int64_t(0));
        if (!split) bind_epilogue(call, problem);
        launch.add(std::move(call));
    }

    bool subgroups_;
};

}  // namespace

void add_implicit_gemm_engines(EngineRegistry& registry) {
    for (const bool subgroups : {true, false})
        for (const char* op : {forward_type, backward_data_type})
            registry.add(std::make_unique<ImplicitGemm>(op, subgroups));
}

}  // namespace dlprim::conv2d
