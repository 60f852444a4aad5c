// SPDX-License-Identifier: MIT
// conv2d.wgmma_planes and conv2d_backward_data.wgmma_planes: convolution and its data gradient in
// exact float, or in tf32, on tensor cores over images that a kernel splits into halves beforehand
// (kernels/conv2d/wgmma_planes_pack.cl, wgmma_planes.cl). What is split once is read for every tap
// and every tile of output channels; wgmma_split splits each time and saves the pass.
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/split_products.hpp"
#include "ops/conv2d/blocked.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/implicit_gemm.hpp"
#include "ops/conv2d/wgmma_split.hpp"
#include "ops/conv2d/wgmma_weights.hpp"

#include <algorithm>

namespace dlprim::conv2d {

namespace {

constexpr const char* source_path = "conv2d/wgmma_planes.cl";
constexpr const char* split_path = "conv2d/wgmma_planes_pack.cl";

// The split images in the workspace, in bytes; see wgmma_planes_pack.cl.
struct Planes {
    std::int64_t blocks, pixels, bytes;

    Planes(const DenseJob& job, int products)
        : blocks(ceil_div(job.group_in, wgmma_depth)),
          pixels(job.n * job.x_h * job.x_w),
          bytes(blocks * pixels * (products == 1 ? 128 : 256) +
                ceil_div(blocks * pixels * 4, 256) * 256) {}
};

std::int64_t steps_of(const DenseJob& job) {
    return ceil_div(job.group_in, wgmma_depth) * job.kernel_h * job.kernel_w;
}

WgmmaSize size_of(const DenseJob& job, int products) {
    return {job.group_out, job.n * job.out_h * job.out_w, steps_of(job), products, 0.6};
}

/// Steps in local memory: what a compute unit holds, with one group of 128 rows or two of 64.
int stages_of(std::int64_t wm, int products) {
    if (products == 1) return 4;
    return wm == 2 ? 3 : 2;
}

class WgmmaPlanes : public Engine {
  public:
    explicit WgmmaPlanes(bool backward) : backward_(backward) {}

    std::string_view name() const override {
        return backward_ ? "conv2d_backward_data.wgmma_planes" : "conv2d.wgmma_planes";
    }
    std::string_view op() const override { return backward_ ? backward_data_type : forward_type; }
    bool on_host() const override { return false; }
    std::vector<std::string> sources() const override {
        return {source_path,          split_path,
                wgmma_weights_source, split_sum_source,
                phase_fill_source,    "common/wgmma_tile.clh",
                "common/wgmma.clh",   "common/split_half.clh"};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (const Verdict verdict = wgmma_split_verdict(device, problem); !verdict) return verdict;
        const Planes planes(jobs_of(problem).at(0), split_products(problem));
        if (planes.blocks * planes.pixels >= std::int64_t(1) << 31)
            return Verdict::no("it counts pixels of blocks of channels in 32 bits");
        return Verdict::yes();
    }
    bool computes_in(Precision) const override { return true; }

    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        // A choice a tile: weights are packed for it. The preferred one first.
        const std::int64_t best =
            choose_wgmma(device, largest(problem), output_bytes(problem), 64e6).at("wm");
        return {wgmma_weights_choice(problem, all_weights(problem, best)),
                wgmma_weights_choice(problem, all_weights(problem, 3 - best))};
    }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        const std::int64_t splits = tuning.at("splits");
        return static_cast<std::uint64_t>(
            Planes(jobs_of(problem).at(0), split_products(problem)).bytes +
            (splits <= 1 ? 0 : problem.outputs[0].shape.numel() * splits * 4));
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const std::int64_t wm = wgmma_weight_rows(problem);
        const int products = split_products(problem);
        const double bytes_per_s = std::max(device.gbytes_per_s, 1.0) * 0.7e9;
        const Planes planes(jobs_of(problem).at(0), products);
        const double image_bytes = 4.0 * static_cast<double>(problem.inputs[0].shape.numel());
        double seconds = (image_bytes + static_cast<double>(planes.bytes)) / bytes_per_s +
                         device.launch_us * 1e-6;
        for (const DenseJob& job : jobs_of(problem))
            seconds +=
                std::max(wgmma_seconds(device, size_of(job, products), wm, tuning.at("splits")),
                         static_cast<double>(planes.bytes) / bytes_per_s) +
                device.launch_us * 1e-6;
        seconds += split_sum_seconds(device, output_bytes(problem), tuning.at("splits"));
        return std::max(seconds, roofline_seconds(device, problem, 0, 1.0, 0.6));
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        const std::int64_t wm = wgmma_weight_rows(problem);
        return choose_wgmma(device, largest(problem), output_bytes(problem), 64e6, wm);
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        return wgmma_tune_space(default_tuning(device, problem));
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        auto launch = std::make_unique<KernelLaunch>();
        const std::int64_t wm = wgmma_weight_rows(problem);
        const bool fill = tuning.at("splits") == 1 && has_empty_phase(jobs_of(problem));
        if (fill) add_phase_fill(*launch, context, problem);
        add_split(*launch, context, problem);
        std::int64_t at = 0;
        for (const DenseJob& job : jobs_of(problem)) {
            const WgmmaWeights weights(job, wm, split_products(problem), true);
            if (!fill || !is_empty(job))
                add_product(*launch, context, problem, tuning.at("splits"), weights, at);
            at += weights.bytes;
        }
        if (tuning.at("splits") > 1)
            add_split_sum(*launch, context, problem, tuning.at("splits"),
                          static_cast<std::uint64_t>(
                              Planes(jobs_of(problem).at(0), split_products(problem)).bytes));
        return launch;
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        return pack_wgmma_weights(context, all_weights(problem, wgmma_weight_rows(problem)));
    }

  private:
    std::vector<WgmmaWeights> all_weights(const Problem& problem, std::int64_t wm) const {
        std::vector<WgmmaWeights> all;
        for (const DenseJob& job : jobs_of(problem))
            all.emplace_back(job, wm, split_products(problem), true);
        return all;
    }

    static WgmmaSize largest(const Problem& problem) {
        std::vector<WgmmaSize> sizes;
        for (const DenseJob& job : jobs_of(problem))
            sizes.push_back(size_of(job, split_products(problem)));
        return most_work(sizes);
    }

    void add_split(KernelLaunch& launch, ContextImpl& context, const Problem& problem) const {
        const DenseJob job = jobs_of(problem).at(0);
        const Planes planes(job, split_products(problem));
        const auto program = context.build(
            {split_path, kernel_source(split_path), define("PRODUCTS", split_products(problem))});
        NDRange range;
        range.dims = 2;
        range.global = {static_cast<std::size_t>(ceil_div(planes.pixels, 32) * 256),
                        static_cast<std::size_t>(planes.blocks), 1};
        range.local = {256, 1, 1};
        KernelCall call(program, "wgmma_planes_pack", range);
        call.tensor("x", 0).tensor_at("planes", static_cast<int>(problem.inputs.size()) + 1, 0, 1);
        call.scalar("channels", static_cast<std::int32_t>(job.group_in))
            .scalar("plane", static_cast<std::int32_t>(job.x_h * job.x_w))
            .scalar("pixels", static_cast<std::int32_t>(planes.pixels));
        call.check();
        launch.add(std::move(call));
    }

    void add_product(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                     std::int64_t splits, const WgmmaWeights& weights,
                     std::int64_t weights_at) const {
        const DenseJob& job = weights.job;
        const int products = split_products(problem);
        const Planes planes(job, products);
        const WgmmaSize size = size_of(job, products);
        const bool split = splits > 1;
        const bool quads = fills_y(job) && job.out_h * job.out_w % 4 == 0;
        const std::string options = define("WM", weights.wm) + define("PRODUCTS", products) +
                                    define("STAGES", stages_of(weights.wm, products)) +
                                    define("Y_QUADS", quads) +
                                    define("KERNEL_H", std::max<std::int64_t>(job.kernel_h, 1)) +
                                    define("KERNEL_W", std::max<std::int64_t>(job.kernel_w, 1));
        const auto program = context.build(
            {source_path,
             with_epilogue(kernel_source(source_path), split ? Epilogue{} : problem.epilogue),
             options});
        KernelCall call(
            program, "wgmma_planes",
            group_range(size.tiles_m(weights.wm) * size.tiles_n() * splits, wgmma_items));
        const int result = static_cast<int>(problem.inputs.size());
        const bool bias = !backward_ && !split && has_bias(problem);
        call.tensor_at("x", result + 1, 0, 1)
            .tensor_at("w", 1, static_cast<std::uint64_t>(weights_at), 1)
            .tensor("bias", bias ? 2 : 1);
        if (split)
            call.tensor_at("y", result + 1, static_cast<std::uint64_t>(planes.bytes), 4);
        else
            call.tensor("y", result);
        const std::pair<const char*, std::int64_t> sizes[] = {
            {"has_bias", bias},
            {"pixels", size.columns},
            {"x_pixels", planes.pixels},
            {"channels_out", job.group_out},
            {"blocks", planes.blocks},
            {"steps", size.steps},
            {"steps_part", std::max<std::int64_t>(1, ceil_div(size.steps, splits))},
            {"tiles_m", size.tiles_m(weights.wm)},
            {"tiles_n", size.tiles_n()}};
        for (const auto& [parameter, value] : sizes)
            call.scalar(parameter, static_cast<std::int32_t>(value));
        bind_images(call, job);
        call.scalar("planes_at", weights.planes_at);
        call.scalar("part_stride", split ? problem.outputs[0].shape.numel() : std::int64_t(0));
        if (!split) bind_epilogue(call, problem.epilogue);
        call.check();
        launch.add(std::move(call));
    }

    bool backward_;
};

}  // namespace

void add_wgmma_planes_engines(EngineRegistry& registry) {
    registry.add(std::make_unique<WgmmaPlanes>(false));
    registry.add(std::make_unique<WgmmaPlanes>(true));
}

}  // namespace dlprim::conv2d
