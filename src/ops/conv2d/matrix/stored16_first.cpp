// SPDX-License-Identifier: MIT
// conv2d.wgmma_half_first and conv2d_backward_filter.wgmma_half_first (mma_half_first): the first
// convolution of a network, and its filter gradient, on tensor cores
// (kernels/conv2d/stored16_first.cl, stored16_first_filter.cl). Images are plain and have few
// channels. The convolution's output has its channels last. The images or the output are half or
// bfloat16.
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/matrix/model.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/gpu.hpp"
#include "ops/conv2d/matrix/stored16.hpp"

#include <algorithm>

namespace dlprim::conv2d {

namespace {

constexpr const char* forward_path = "conv2d/stored16_first.cl";
constexpr const char* filter_path = "conv2d/stored16_first_filter.cl";

std::int64_t depth_of(const Geometry& g) {
    return g.in * g.kh * g.kw;
}
std::int64_t pixels_of(const Geometry& g) {
    return g.n * g.oh * g.ow;
}

// Returns the type in which the kernel multiplies: that of the first operand if it has 16 bits,
// else that of the second.
DType product_type(const Operand& a, const Operand& b) {
    return stored16_kind(a.dtype) != 0 ? a.dtype : b.dtype;
}

// Returns yes if the problem meets the conditions of both engines; else no, with the reason.
Verdict first_verdict(MatrixUnit unit, const Traits& device, const Problem& problem,
                      DType product) {
    if (Geometry::of(problem).in % 8 == 0)
        return Verdict::no(cat(
            "it is made for numbers of input channels that are not multiples of 8, and there are ",
            Geometry::of(problem).in));
    if (stored16_kind(product) == 0)
        return Verdict::no("it needs an input or output in half or bfloat16");
    if (!stored16_precision(problem, product))
        return Verdict::no("it rounds both factors to 16 bits, which the precision does not allow");
    return stored16_size_verdict(unit, device, problem, product);
}

/// Returns the compiler options that make sizes constants: "-DCHANNELS=3 ...".
std::string geometry_options(const Geometry& g) {
    return define("CHANNELS", g.in) + define("KERNEL_H", g.kh) + define("KERNEL_W", g.kw) +
           define("X_H", g.h) + define("X_W", g.w) + define("OUT_H", g.oh) + define("OUT_W", g.ow) +
           define("STRIDE_H", g.sh) + define("STRIDE_W", g.sw);
}

/// Seconds of gathering the patches that many times, at the rate at which an H200 reads from its
/// caches.
double gather_seconds(const Traits& device, const Geometry& g, std::int64_t times) {
    const double elements = static_cast<double>(pixels_of(g)) *
                            static_cast<double>(ceil_div(depth_of(g), 16) * 16 * times);
    return elements / h200::gathered_per_s * h200::compute_units /
           std::max(device.compute_units, 1);
}

class Stored16FirstEngine : public ConvolutionEngine {
  public:
    explicit Stored16FirstEngine(MatrixUnit unit)
        : ConvolutionEngine(forward_type, cat(name_of(unit), "_half_first")), unit_(unit) {}

    std::vector<std::string> sources() const override {
        return {forward_path, stored16_weights_source};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        const Geometry g = Geometry::of(problem);
        if (depth_of(g) > 384)
            return Verdict::no(
                cat("it supports kernels over all input channels of at most 384 elements, not ",
                    depth_of(g)));
        if (Verdict verdict = stored16_storage_verdict(problem, {0}, true); !verdict)
            return verdict;
        if (Verdict verdict = first_verdict(unit_, device, problem,
                                            product_type(problem.inputs[0], problem.outputs[0]));
            !verdict)
            return verdict;
        const std::int64_t steps = ceil_div(depth_of(g), stored16_depth), columns = columns_of(g);
        return stored16_local_verdict(
            unit_, device,
            std::max(steps * (128 + columns) * 128, 128 * (columns + 8) * 4) +
                steps * stored16_depth * 8);
    }
    bool computes_in(Precision precision) const override { return precision != Precision::fp32; }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        LayoutChoice choice = channels_last_choice(problem);
        choice.inputs[0] = Layout::plain();
        const DenseJob job = plain_job(problem);
        choice.inputs[1] =
            stored16_weights_layout({job}, product_type(problem.inputs[0], problem.outputs[0]), 1);
        return {choice};
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Geometry g = Geometry::of(problem);
        return std::max(
            gather_seconds(device, g, ceil_div(g.out, columns_of(g))) + device.launch_us * 1e-6,
            roofline_seconds(device, problem, 0, 1.0, 0.6));
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Geometry g = Geometry::of(problem);
        const DenseJob job = plain_job(problem);
        const Stored16Weights weights(source_of(job), 1);
        const std::int64_t columns = columns_of(g), tiles_n = ceil_div(g.out, columns);
        const bool fours = g.out % 4 == 0, bias = has_bias(problem);
        const std::string options =
            define("KIND", stored16_kind(product_type(problem.inputs[0], problem.outputs[0]))) +
            define("X_KIND", stored16_kind(problem.inputs[0].dtype)) +
            define("Y_KIND", stored16_kind(problem.outputs[0].dtype)) + define("BN", columns) +
            define("STEPS", weights.steps) + define("Y_FOURS", fours) + geometry_options(g) +
            unit_option(unit_);
        const auto program = context.build(
            {forward_path, with_epilogue(kernel_source(forward_path), problem, fours ? 4 : 1),
             options});
        KernelCall call(program, "stored16_first",
                        group_range(ceil_div(pixels_of(g), 128) * tiles_n, stored16_items));
        const int result = static_cast<int>(problem.inputs.size());
        call.tensor("x", 0, size_of(problem.inputs[0].dtype)).tensor_at("w", 1, 0, 1);
        call.tensor("bias", bias ? 2 : 1);
        call.tensor("y", result, size_of(problem.outputs[0].dtype));
        call.sizes({{"has_bias", bias},
                    {"pixels", pixels_of(g)},
                    {"channels_out", g.out},
                    {"pad_h", g.pt},
                    {"pad_w", g.pl},
                    {"dilate_h", g.dh},
                    {"dilate_w", g.dw},
                    {"tiles_n", tiles_n},
                    {"row_blocks", weights.rows / stored16_block}});
        call.scalar("blocks_at", weights.blocks_at);
        bind_epilogue(call, problem);
        return std::make_unique<KernelLaunch>(std::move(call));
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        return pack_stored16_weights(context, {plain_job(problem)},
                                     product_type(problem.inputs[0], problem.outputs[0]), 1);
    }

  private:
    static DenseJob plain_job(const Problem& problem) { return forward_job(Geometry::of(problem)); }
    static std::int64_t columns_of(const Geometry& g) { return g.out <= 64 ? 64 : 128; }

    MatrixUnit unit_;
};

class Stored16FirstFilterEngine : public ConvolutionEngine {
  public:
    explicit Stored16FirstFilterEngine(MatrixUnit unit)
        : ConvolutionEngine(backward_filter_type, cat(name_of(unit), "_half_first")), unit_(unit) {}

    std::vector<std::string> sources() const override {
        return {filter_path, stored16_filter_sum_source};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        const Geometry g = Geometry::of(problem);
        if (g.out % 8 != 0)
            return Verdict::no(
                cat("it needs a number of output channels that is a multiple of 8, not ", g.out));
        if (depth_of(g) > 512)
            return Verdict::no(
                cat("it supports kernels over all input channels of at most 512 elements, not ",
                    depth_of(g)));
        if (Verdict verdict = stored16_storage_verdict(problem, {0, 1}, false); !verdict)
            return verdict;
        const DType x = problem.inputs[0].dtype, dy = problem.inputs[1].dtype;
        if (stored16_kind(dy) == 0 || (x != dy && x != DType::f32))
            return Verdict::no(
                "it needs a gradient in half or bfloat16, and an image in float or in the "
                "gradient's type");
        if (Verdict verdict = first_verdict(unit_, device, problem, dy); !verdict) return verdict;
        return stored16_local_verdict(unit_, device,
                                      2 * (rows_of(g) + columns_of(g)) * 128 + columns_of(g) * 8);
    }
    bool computes_in(Precision precision) const override { return precision != Precision::fp32; }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        LayoutChoice choice = LayoutChoice::all(problem);
        choice.inputs[1] = Layout::channels_last();
        return {choice};
    }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        return static_cast<std::uint64_t>(problem.outputs[0].shape.numel()) * 4 *
               static_cast<std::uint64_t>(parts_of(Geometry::of(problem), tuning).first);
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const Geometry g = Geometry::of(problem);
        const double seconds = gather_seconds(device, g, ceil_div(g.out, rows_of(g))) +
                               parts_seconds(device, output_bytes(problem),
                                             std::max<std::int64_t>(2, parts_of(g, tuning).first)) +
                               device.launch_us * 1e-6;
        return std::max(seconds, roofline_seconds(device, problem, 0, 1.0, 0.6));
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        const Geometry g = Geometry::of(problem);
        const std::int64_t wanted = 2 * std::max(device.compute_units, 1);
        return {{"splits", std::clamp<std::int64_t>(wanted / ceil_div(g.out, rows_of(g)), 1,
                                                    std::max<std::int64_t>(1, steps_of(g) / 4))}};
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        const std::int64_t splits = default_tuning(device, problem).at("splits");
        return {{"splits", {splits, splits * 2, ceil_div(splits, 2)}}};
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Geometry g = Geometry::of(problem);
        const auto [count, each] = parts_of(g, tuning);
        const std::int64_t rows = rows_of(g), tiles_m = ceil_div(g.out, rows);
        const std::string options = define("KIND", stored16_kind(problem.inputs[1].dtype)) +
                                    define("X_KIND", stored16_kind(problem.inputs[0].dtype)) +
                                    define("WM", rows / stored16_block) +
                                    define("BN", columns_of(g)) + geometry_options(g) +
                                    unit_option(unit_);
        const auto program = context.build({filter_path, kernel_source(filter_path), options});
        KernelCall call(program, "stored16_first_filter",
                        group_range(tiles_m * count, stored16_items));
        const int result = static_cast<int>(problem.inputs.size());
        call.tensor("x", 0, size_of(problem.inputs[0].dtype)).tensor("dy", 1, 2);
        call.tensor("parts", result + 1);
        call.sizes({{"pixels", pixels_of(g)},
                    {"channels_out", g.out},
                    {"pad_h", g.pt},
                    {"pad_w", g.pl},
                    {"dilate_h", g.dh},
                    {"dilate_w", g.dw},
                    {"steps", steps_of(g)},
                    {"steps_part", each},
                    {"tiles_m", tiles_m}});
        call.scalar("part_stride", problem.outputs[0].shape.numel());
        auto launch = std::make_unique<KernelLaunch>();
        launch->add(std::move(call));
        add_stored16_filter_sum(*launch, context, problem, count, 1, depth_of(g));
        return launch;
    }

  private:
    static std::int64_t steps_of(const Geometry& g) {
        return ceil_div(pixels_of(g), stored16_depth);
    }
    /// Returns the output channels per tile.
    static std::int64_t rows_of(const Geometry& g) {
        return g.out <= stored16_block || depth_of(g) > 256 ? stored16_block : 2 * stored16_block;
    }
    static std::int64_t columns_of(const Geometry& g) {
        // Each warpgroup computes 64, 128 or 256 columns.
        std::int64_t width = 64;
        while (width * 128 / rows_of(g) < depth_of(g)) width *= 2;
        return width * 128 / rows_of(g);
    }
    /// Returns the number of parts, and the steps in each.
    static std::pair<std::int64_t, std::int64_t> parts_of(const Geometry& g, const Tuning& tuning) {
        const std::int64_t each = std::max<std::int64_t>(
            1, ceil_div(steps_of(g), std::max<std::int64_t>(tuning.at("splits"), 1)));
        return {std::max<std::int64_t>(1, ceil_div(steps_of(g), each)), each};
    }

    MatrixUnit unit_;
};

}  // namespace

void add_stored16_first_engines(EngineRegistry& registry) {
    for (const MatrixUnit unit : matrix_units) {
        registry.add(std::make_unique<Stored16FirstEngine>(unit));
        registry.add(std::make_unique<Stored16FirstFilterEngine>(unit));
    }
}

}  // namespace dlprim::conv2d
