// SPDX-License-Identifier: MIT
// conv2d.wgmma_split and conv2d_backward_data.wgmma_split (mma_split): convolution and its data
// gradient in exact float, or in tf32, on tensor cores over plain images
// (kernels/conv2d/wgmma_split.cl). A data gradient with a stride is one product for each phase of
// the stride. Small problems split their sums.
#include "ops/conv2d/matrix/wgmma_split.hpp"

#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/split_products.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/matrix/wgmma_weights.hpp"
#include "ops/conv2d/portable/implicit_gemm.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::conv2d {

namespace {

constexpr const char* source_path = "conv2d/wgmma_split.cl";

// Whether a step of K has one tap: channels fill it, or there is but one.
bool blocked(const DenseJob& job) {
    return job.group_in % wgmma_depth == 0 || job.kernel_h * job.kernel_w == 1;
}

// Where a step has many taps, each element has a table's entry, which takes twice as long.
WgmmaSize size_of(const DenseJob& job, int products, MatrixUnit unit) {
    return {job.group_out, job.n * job.out_h * job.out_w,
            ceil_div(job.group_in * job.kernel_h * job.kernel_w, wgmma_depth), products,
            (blocked(job) ? 1.0 : 2.0) * unit_pace(unit)};
}

class WgmmaSplit : public Engine {
  public:
    WgmmaSplit(MatrixUnit unit, bool backward)
        : name_(cat(backward ? "conv2d_backward_data." : "conv2d.", name_of(unit), "_split")),
          unit_(unit),
          backward_(backward) {}

    std::string_view name() const override { return name_; }
    std::string_view op() const override { return backward_ ? backward_data_type : forward_type; }
    bool on_host() const override { return false; }
    std::vector<std::string> sources() const override {
        return {source_path,       wgmma_weights_source,     split_sum_source,
                phase_fill_source, "common/matrix_tile.clh", "common/split_half.clh"};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (const Verdict verdict = wgmma_split_verdict(unit_, device, problem); !verdict)
            return verdict;
        return wgmma_rows_verdict(most_rows(device, problem));
    }
    bool computes_in(Precision) const override { return true; }

    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        // A choice a tile: weights are packed for it. The preferred one first.
        const std::int64_t best =
            wm_of(choose_wgmma(device, largest(device, problem), output_bytes(problem), 64e6));
        if (most_rows(device, problem) < 2) return {choice_of(problem, best)};
        return {choice_of(problem, best), choice_of(problem, 3 - best)};
    }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        const std::int64_t splits = tuning.at("splits");
        return splits <= 1
                   ? 0
                   : static_cast<std::uint64_t>(problem.outputs[0].shape.numel() * splits) * 4;
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const std::int64_t wm = wgmma_weight_rows(problem);
        double seconds = 0;
        for (const DenseJob& job : jobs_of(problem))
            seconds += wgmma_seconds(device, size_of(job, split_products(problem), unit_), wm,
                                     tuning.at("splits")) +
                       device.launch_us * 1e-6;
        seconds += split_sum_seconds(device, output_bytes(problem), tuning.at("splits"));
        return std::max(seconds, roofline_seconds(device, problem, 0, 1.0, 0.6));
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        // The layout settles the tile; the job with most work decides the parts.
        const std::int64_t wm = wgmma_weight_rows(problem);
        return choose_wgmma(device, largest(device, problem), output_bytes(problem), 64e6, wm);
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        return wgmma_tune_space(default_tuning(device, problem));
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        auto launch = std::make_unique<KernelLaunch>();
        const std::int64_t wm = wgmma_weight_rows(problem);
        std::int64_t at = 0;
        const bool fill = tuning.at("splits") == 1 && has_empty_phase(jobs_of(problem));
        if (fill) add_phase_fill(*launch, context, problem);
        for (const DenseJob& job : jobs_of(problem)) {
            if (!fill || !is_empty(job))
                add_call(*launch, context, problem, tuning.at("splits"), wm, job, at);
            at += WgmmaWeights(job, wm, split_products(problem), blocked(job)).bytes;
        }
        if (tuning.at("splits") > 1) add_split_sum(*launch, context, problem, tuning.at("splits"));
        return launch;
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        return pack_wgmma_weights(context, all_weights(problem, wgmma_weight_rows(problem)));
    }

  private:
    std::int64_t most_rows(const Traits& device, const Problem& problem) const {
        // Behind two stages: largest values, factors and places.
        return most_wgmma_rows(unit_, device, split_products(problem), 2, wgmma_columns * 7 * 4);
    }
    WgmmaSize largest(const Traits& device, const Problem& problem) const {
        std::vector<WgmmaSize> sizes;
        for (const DenseJob& job : jobs_of(problem))
            sizes.push_back(size_of(job, split_products(problem), unit_));
        WgmmaSize most = most_work(sizes);
        most.most_wm = most_rows(device, problem);
        return most;
    }

    std::vector<WgmmaWeights> all_weights(const Problem& problem, std::int64_t wm) const {
        std::vector<WgmmaWeights> all;
        for (const DenseJob& job : jobs_of(problem))
            all.emplace_back(job, wm, split_products(problem), blocked(job));
        return all;
    }
    LayoutChoice choice_of(const Problem& problem, std::int64_t wm) const {
        return wgmma_weights_choice(problem, all_weights(problem, wm));
    }

    void add_call(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                  std::int64_t splits, std::int64_t wm, const DenseJob& job,
                  std::int64_t weight_bytes) const {
        const int products = split_products(problem);
        const WgmmaWeights packed(job, wm, products, blocked(job));
        const WgmmaSize size = size_of(job, products, unit_);
        const bool split = splits > 1;
        const bool quads = fills_y(job) && job.out_h * job.out_w % 4 == 0;
        const std::string options = define("WM", wm) + define("PRODUCTS", products) +
                                    define("Y_QUADS", quads) +
                                    define("KERNEL_H", std::max<std::int64_t>(job.kernel_h, 1)) +
                                    define("KERNEL_W", std::max<std::int64_t>(job.kernel_w, 1)) +
                                    define("BLOCKED", blocked(job)) +
                                    define("CHANNEL_TAIL", job.group_in % wgmma_depth != 0) +
                                    define("PLANE", job.x_h * job.x_w) + unit_option(unit_);
        const auto program = context.build(
            {source_path,
             with_epilogue(kernel_source(source_path), split ? Epilogue{} : problem.epilogue),
             options});
        KernelCall call(program, "wgmma_split",
                        group_range(size.tiles_m(wm) * size.tiles_n() * splits, wgmma_items));
        const int result = static_cast<int>(problem.inputs.size());
        const bool bias = !backward_ && !split && has_bias(problem);
        call.tensor("x", 0).tensor_at("w", 1, static_cast<std::uint64_t>(weight_bytes), 1);
        call.tensor("bias", bias ? 2 : 1).tensor("y", split ? result + 1 : result);
        const std::pair<const char*, std::int64_t> sizes[] = {
            {"has_bias", bias},
            {"pixels", size.columns},
            {"channels_in", job.group_in},
            {"channels_out", job.group_out},
            {"steps", size.steps},
            {"steps_part", std::max<std::int64_t>(1, ceil_div(size.steps, splits))},
            {"tiles_m", size.tiles_m(wm)},
            {"tiles_n", size.tiles_n()}};
        for (const auto& [parameter, value] : sizes)
            call.scalar(parameter, static_cast<std::int32_t>(value));
        bind_images(call, job);
        call.scalar("table_at", packed.table_at).scalar("planes_at", packed.planes_at);
        call.scalar("part_stride", split ? problem.outputs[0].shape.numel() : std::int64_t(0));
        if (!split) bind_epilogue(call, problem.epilogue);
        call.check();
        launch.add(std::move(call));
    }

    std::string name_;
    MatrixUnit unit_;
    bool backward_;
};

}  // namespace

std::int64_t WgmmaSize::tiles_m(std::int64_t wm) const {
    return ceil_div(rows, 64 * wm);
}
std::int64_t WgmmaSize::tiles_n() const {
    return ceil_div(columns, wgmma_columns);
}

WgmmaSize most_work(const std::vector<WgmmaSize>& sizes) {
    const auto work = [](const WgmmaSize& s) {
        return static_cast<double>(s.rows * s.columns) * static_cast<double>(s.steps);
    };
    return *std::max_element(sizes.begin(), sizes.end(),
                             [&](const auto& a, const auto& b) { return work(a) < work(b); });
}

std::int64_t most_wgmma_rows(MatrixUnit unit, const Traits& device, int products,
                             std::int64_t stages, std::int64_t more) {
    const std::int64_t planes = products == 1 ? 1 : 2;
    for (std::int64_t wm = 2; wm > 0; --wm)
        if (stages * planes * (64 * wm + wgmma_columns) * wgmma_depth * 2 + more <=
            unit_local_bytes(unit, device))
            return wm;
    return 0;
}

Verdict wgmma_rows_verdict(std::int64_t most) {
    return most > 0 ? Verdict::yes()
                    : Verdict::no("its tiles do not fit into the local memory of a work-group");
}

Verdict wgmma_split_verdict(MatrixUnit unit, const Traits& device, const Problem& problem,
                            std::initializer_list<DType> types) {
    if (const Verdict verdict = unit_verdict(unit, device, types); !verdict) return verdict;
    if (const Verdict verdict = index_verdict(problem); !verdict) return verdict;
    for (const auto* operands : {&problem.inputs, &problem.outputs})
        for (const Operand& operand : *operands)
            if (operand.shape.numel() >= (std::int64_t(1) << 31) - 65536)
                return Verdict::no("a tensor has too many elements for its 32-bit indices");
    const Geometry g = Geometry::of(problem);
    if (g.groups != 1) return Verdict::no("it does not support grouped convolutions");
    if (g.kh > 15 || g.kw > 15) return Verdict::no("it supports filters of at most 15 x 15");
    return Verdict::yes();
}

double wgmma_seconds(const Traits& device, const WgmmaSize& size, std::int64_t wm,
                     std::int64_t splits) {
    // A step of a tile on an H200, at the speed of its matrix units: 64 x 128 tiles come two to a
    // compute unit. Measured steps take 1.6 to 2 times that, and so do those of the models that
    // this is compared with (implicit_gemm's); only the order counts.
    const double step = (wm == 2 ? 1.25e-6 : 0.75e-6) * size.pace / split_gain(size.products);
    const double groups =
        static_cast<double>(size.tiles_m(wm) * size.tiles_n()) * static_cast<double>(splits);
    const double each = groups / std::max(device.compute_units, 1);
    const double resident = wm == 2 ? 1 : 2;
    const double rounds = std::max(resident, std::ceil(each / resident) * resident);
    return rounds * step * (static_cast<double>(ceil_div(size.steps, splits)) + 3.0);
}

double wgmma_split_seconds(const Traits& device, const WgmmaSize& size, std::int64_t wm,
                           std::int64_t splits, double part_bytes) {
    return wgmma_seconds(device, size, wm, splits) + split_sum_seconds(device, part_bytes, splits);
}

Tuning choose_wgmma(const Traits& device, const WgmmaSize& size, double part_bytes,
                    double limit_bytes, std::int64_t only_wm) {
    Tuning best{{"rows", wgmma_rows}, {"splits", 1}};
    double best_seconds = 1e300;
    for (std::int64_t wm = 1; wm <= 2; ++wm) {
        if (wm > size.most_wm || (only_wm != 0 && wm != only_wm)) continue;
        for (std::int64_t splits = 1; splits <= 512;
             splits += std::max<std::int64_t>(1, splits / 4)) {
            if (splits > 1 &&
                (size.steps / splits < 2 || part_bytes * static_cast<double>(splits) > limit_bytes))
                break;
            const double seconds = wgmma_split_seconds(device, size, wm, splits, part_bytes);
            if (seconds < best_seconds * 0.999) {
                best_seconds = seconds;
                best = {{"rows", wgmma_rows * wm}, {"splits", splits}};
            }
        }
    }
    return best;
}

TuneSpace wgmma_tune_space(const Tuning& standard) {
    const std::int64_t splits = standard.at("splits");
    TuneSpace space{{"rows", {standard.at("rows")}}, {"splits", {splits, splits * 2}}};
    if (splits > 1) space["splits"].push_back(ceil_div(splits, 2));
    return space;
}

void add_wgmma_split_engines(EngineRegistry& registry) {
    for (const MatrixUnit unit : matrix_units)
        for (const bool backward : {false, true})
            registry.add(std::make_unique<WgmmaSplit>(unit, backward));
}

}  // namespace dlprim::conv2d
