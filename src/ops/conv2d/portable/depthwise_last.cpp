// SPDX-License-Identifier: MIT
// conv2d.depthwise_last, conv2d_backward_data.depthwise_last and
// conv2d_backward_filter.depthwise_last: depthwise convolutions and their gradients for
// channels_last images of float, half or bfloat16 (kernels/conv2d/depthwise_last.cl,
// depthwise_last_filter.cl).
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/gpu.hpp"
#include "ops/conv2d/matrix/stored16.hpp"

#include <algorithm>

namespace dlprim::conv2d {

namespace {

constexpr const char* source_path = "conv2d/depthwise_last.cl";
constexpr const char* filter_path = "conv2d/depthwise_last_filter.cl";
constexpr std::int64_t most_taps = 49, most_span = 16;
constexpr std::int64_t taps_in_registers = 25;
constexpr std::int64_t items = 128, filter_items = 256;

/// How many quads of channels a work-group of many taps has side by side: up to 16, of which the
/// fewest are beyond the last channel.
std::int64_t quads_beside(std::int64_t channels) {
    const std::int64_t quads = ceil_div(channels, std::int64_t{4});
    std::int64_t beside = 16;
    while (beside > 4 && quads % beside != 0) beside /= 2;
    return beside;
}

std::string tail_define(std::int64_t channels) {
    return channels % 4 == 0 ? "" : define("TAIL", channels % 4);
}

Verdict last_verdict(const Problem& problem, std::initializer_list<int> images, bool output) {
    if (Verdict verdict = stored16_storage_verdict(problem, images, output); !verdict)
        return verdict;
    Problem sizes = problem;
    for (auto* operands : {&sizes.inputs, &sizes.outputs})
        for (Operand& operand : *operands) operand.dtype = DType::f32;
    if (Verdict verdict = index_verdict(sizes); !verdict) return verdict;
    const Geometry g = Geometry::of(problem);
    if (g.group_in() != 1 || g.group_out() != 1)
        return Verdict::no(cat("it needs groups of one input and one output channel, not ",
                               g.group_in(), " and ", g.group_out()));
    if (g.in < 4) return Verdict::no(cat("it needs at least 4 channels, not ", g.in));
    if (g.kh * g.kw > most_taps)
        return Verdict::no(cat("it supports kernels of at most ", most_taps, " elements, not ",
                               g.kh, " x ", g.kw));
    return Verdict::yes();
}

double last_seconds(const Traits& device, const Problem& problem, int calls) {
    // On CPUs other layouts are faster. With float images, conversions to this layout do not pay.
    const bool narrow = stored16_kind(problem.inputs[0].dtype) != 0;
    return roofline_seconds(device, problem, Geometry::of(problem).flops(),
                            device.wide_vectors ? 0.01 : 0.12,
                            device.wide_vectors ? 0.1
                            : narrow            ? 0.5
                                                : 0.45) +
           (calls - 1) * device.launch_us * 1e-6;
}

class DepthwiseLast : public ConvolutionEngine {
  public:
    explicit DepthwiseLast(const char* op) : ConvolutionEngine(op, "depthwise_last") {}

    std::vector<std::string> sources() const override { return {source_path}; }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = last_verdict(problem, {0}, true); !verdict) return verdict;
        const Geometry g = Geometry::of(problem);
        if (g.kh * g.kw <= taps_in_registers) return Verdict::yes();
        const std::int64_t bytes = 16 * quads_beside(g.in) * g.kh * g.kw;
        if (device.local_bytes < static_cast<std::uint64_t>(bytes))
            return Verdict::no(cat("it needs ", bytes,
                                   " bytes of local memory, and the device has ",
                                   device.local_bytes));
        if (device.max_work_group < static_cast<std::uint64_t>(items))
            return Verdict::no(cat("it needs work-groups of ", items,
                                   " work-items, and the device allows ", device.max_work_group));
        return Verdict::yes();
    }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        return {channels_last_choice(problem)};
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return last_seconds(device, problem, static_cast<int>(jobs_of(problem).size()));
    }

    TuneSpace tune_space(const Traits&, const Problem& problem) const override {
        const Geometry g = Geometry::of(problem);
        TuneSpace space{{"outputs", {1}}, {"rows", {1}}};
        if (g.dw == 1) space["outputs"] = {1, 2, 4};
        if (g.dh == 1) space["rows"] = {1, 2, 4};
        return space;
    }
    Tuning default_tuning(const Traits&, const Problem& problem) const override {
        const DenseJob job = jobs_of(problem).front();
        const bool wide = job.kernel_h * job.kernel_w > taps_in_registers && job.out_w >= 4;
        return {{"outputs", job.dilate_w != 1 || job.out_w < 2 ? 1
                            : wide                             ? 4
                                                               : 2},
                {"rows", job.dilate_h == 1 && job.out_h >= 4 ? 4 : 1}};
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        auto launch = std::make_unique<KernelLaunch>();
        for (const DenseJob& job : jobs_of(problem))
            add_call(*launch, context, problem, job, tuning.at("outputs"), tuning.at("rows"));
        return launch;
    }

  private:
    void add_call(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                  const DenseJob& job, std::int64_t outputs, std::int64_t rows) const {
        if (job.dilate_h != 1) rows = 1;
        if (job.dilate_w != 1 || (outputs - 1) * job.stride_w + job.kernel_w > most_span)
            outputs = 1;
        const std::int64_t least = 1;
        const std::int64_t taps = std::max(job.kernel_h, least) * std::max(job.kernel_w, least);
        const std::int64_t quads = taps > taps_in_registers ? quads_beside(job.groups) : 0;
        const std::int64_t places =
            job.n * ceil_div(job.out_h, rows) * ceil_div(job.out_w, outputs);
        const std::int64_t count =
            quads > 0 ? places : places * ceil_div(job.groups, std::int64_t{4});
        const std::string options =
            define("X_KIND", stored16_kind(problem.inputs[0].dtype)) +
            define("Y_KIND", stored16_kind(problem.outputs[0].dtype)) +
            define("KERNEL_H", std::max(job.kernel_h, least)) +
            define("KERNEL_W", std::max(job.kernel_w, least)) + define("STRIDE_H", job.stride_h) +
            define("STRIDE_W", job.stride_w) + define("DILATE_H", job.dilate_h) +
            define("DILATE_W", job.dilate_w) + define("ROWS", rows) + define("OUTPUTS", outputs) +
            " -DCOUNT_T=" + count_type(static_cast<std::uint64_t>(count)) +
            (quads > 0 ? define("QUADS", quads) : "") + tail_define(job.groups);
        const auto program = context.build(
            {source_path, with_epilogue(kernel_source(source_path), problem, 4), options});
        KernelCall call(program, "depthwise_last",
                        quads == 0
                            ? rounded_range(context.traits(), count, items)
                            : group_range(ceil_div(ceil_div(job.groups, std::int64_t{4}), quads) *
                                              ceil_div(places, items / quads),
                                          items));
        const bool bias = !backward_ && has_bias(problem);
        call.tensor("x", 0, size_of(problem.inputs[0].dtype)).tensor("weight", 1);
        call.tensor("bias", bias ? 2 : 1);
        call.tensor("y", static_cast<int>(problem.inputs.size()),
                    size_of(problem.outputs[0].dtype));
        call.scalar("count", count);
        call.sizes({{"has_bias", bias},
                    // A phase may have no tap in one of the dimensions.
                    {"taps_h", is_empty(job) ? 0 : job.kernel_h},
                    {"channels", job.groups},
                    {"x_h", job.x_h},
                    {"x_w", job.x_w},
                    {"y_h", job.y_h},
                    {"y_w", job.y_w},
                    {"out_h", job.out_h},
                    {"out_w", job.out_w},
                    {"row0", job.row0},
                    {"column0", job.column0},
                    {"row_step", job.row_step},
                    {"column_step", job.column_step},
                    {"pad_h", job.pad_h},
                    {"pad_w", job.pad_w},
                    {"weight_w", job.weight_w},
                    {"h0", job.h0},
                    {"h_step", job.h_step},
                    {"w0", job.w0},
                    {"w_step", job.w_step},
                    {"weight_channel", job.weight_group}});
        bind_epilogue(call, problem);
        launch.add(std::move(call));
    }
};

class DepthwiseLastFilter : public ConvolutionEngine {
  public:
    DepthwiseLastFilter() : ConvolutionEngine(backward_filter_type, "depthwise_last") {}

    std::vector<std::string> sources() const override {
        return {filter_path, stored16_filter_sum_source};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (device.max_work_group < static_cast<std::uint64_t>(filter_items))
            return Verdict::no(cat("it needs work-groups of ", filter_items,
                                   " work-items, and the device allows ", device.max_work_group));
        if (device.local_bytes < 16 * static_cast<std::uint64_t>(filter_items))
            return Verdict::no(cat("it needs 4 KiB of local memory, and the device has ",
                                   device.local_bytes, " bytes"));
        if (span(Geometry::of(problem), 1) > most_span)
            return Verdict::no(
                cat("it keeps the pixels of a row that a kernel spans in registers, and more than ",
                    most_span, " do not fit"));
        return last_verdict(problem, {0, 1}, false);
    }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        LayoutChoice choice = LayoutChoice::all(problem);
        choice.inputs[0] = choice.inputs[1] = Layout::channels_last();
        return {choice};
    }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        return static_cast<std::uint64_t>(problem.outputs[0].shape.numel() *
                                          parts_of(Geometry::of(problem), tuning).first) *
               4;
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return last_seconds(device, problem, 2);
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        // Enough parts for eight work-groups per compute unit, of at least a thousand pixels each.
        const Geometry g = Geometry::of(problem);
        const std::int64_t groups = ceil_div(ceil_div(g.in, std::int64_t{4}), quads_of(g));
        const std::int64_t wanted = ceil_div(8 * std::max(device.compute_units, 1), groups);
        return {{"parts", std::clamp<std::int64_t>(
                              wanted, 1, std::max<std::int64_t>(1, g.n * g.oh * g.ow / 1024))},
                {"outputs", g.ow >= 4 && span(g, 4) <= most_span ? 4 : 1}};
    }
    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        const std::int64_t parts = default_tuning(device, problem).at("parts");
        return {{"parts", {parts, parts * 2, ceil_div(parts, 2)}}, {"outputs", {1, 2, 4}}};
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Geometry g = Geometry::of(problem);
        const auto [count, lines] = parts_of(g, tuning);
        const std::int64_t quads = quads_of(g),
                           groups = ceil_div(ceil_div(g.in, std::int64_t{4}), quads);
        const std::int64_t band = band_of(g);
        std::int64_t outputs = tuning.at("outputs");
        if (span(g, outputs) > most_span) outputs = 1;
        const std::string options =
            define("X_KIND", stored16_kind(problem.inputs[0].dtype)) +
            define("DY_KIND", stored16_kind(problem.inputs[1].dtype)) + define("QUADS", quads) +
            define("OUTPUTS", outputs) + define("KERNEL_H", g.kh) + define("KERNEL_W", g.kw) +
            define("STRIDE_H", g.sh) + define("STRIDE_W", g.sw) + define("DILATE_H", g.dh) +
            define("DILATE_W", g.dw) + define("SPAN", span(g, outputs)) +
            (band < g.kh ? define("BAND", band) : "") + tail_define(g.in);
        const auto program = context.build({filter_path, kernel_source(filter_path), options});
        KernelCall call(program, "depthwise_last_filter",
                        group_range(groups * count * ceil_div(g.kh, band), filter_items));
        call.tensor("x", 0, size_of(problem.inputs[0].dtype));
        call.tensor("dy", 1, size_of(problem.inputs[1].dtype));
        call.tensor("parts", static_cast<int>(problem.inputs.size()) + 1);
        call.sizes({{"channels", g.in},
                    {"batch", g.n},
                    {"lines", lines},
                    {"groups", groups},
                    {"h", g.h},
                    {"w", g.w},
                    {"oh", g.oh},
                    {"ow", g.ow},
                    {"pt", g.pt},
                    {"pl", g.pl}});
        call.scalar("part_stride", problem.outputs[0].shape.numel());
        auto launch = std::make_unique<KernelLaunch>();
        launch->add(std::move(call));
        add_stored16_filter_sum(*launch, context, problem, count, 1, g.kh * g.kw);
        return launch;
    }

  private:
    /// The number of columns of x that `outputs` neighbours in a row of dy read.
    static std::int64_t span(const Geometry& g, std::int64_t outputs) {
        return (outputs - 1) * g.sw + (g.kw - 1) * g.dw + 1;
    }
    /// The number of rows of the kernel that a work-group sums: all, or of a large kernel one, so
    /// that registers leave room for a second work-group.
    static std::int64_t band_of(const Geometry& g) {
        return g.kh * g.kw <= taps_in_registers ? g.kh : 1;
    }
    /// The number of quads of channels that a work-group has side by side.
    static std::int64_t quads_of(const Geometry& g) {
        std::int64_t quads = 1;
        while (quads < 16 && 4 * quads < g.in) quads *= 2;
        return quads;
    }
    /// The number of parts, and the rows of dy in each.
    static std::pair<std::int64_t, std::int64_t> parts_of(const Geometry& g, const Tuning& tuning) {
        const std::int64_t lines = g.n * g.oh;
        const std::int64_t each = std::max<std::int64_t>(
            1, ceil_div(lines, std::max<std::int64_t>(tuning.at("parts"), 1)));
        return {std::max<std::int64_t>(1, ceil_div(lines, each)), each};
    }
};

}  // namespace

void add_depthwise_last_engines(EngineRegistry& registry) {
    for (const char* op : {forward_type, backward_data_type})
        registry.add(std::make_unique<DepthwiseLast>(op));
    registry.add(std::make_unique<DepthwiseLastFilter>());
}

}  // namespace dlprim::conv2d
