// SPDX-License-Identifier: MIT
// conv2d.depthwise, conv2d_backward_data.depthwise and conv2d_backward_filter.depthwise: direct
// convolution on GPUs over plain images where groups have few channels
// (kernels/conv2d/depthwise.cl, depthwise_strided.cl, depthwise_filter.cl).
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "ops/conv2d/blocked.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/implicit_gemm.hpp"

#include <algorithm>

namespace dlprim::conv2d {

namespace {

constexpr const char* source_path = "conv2d/depthwise.cl";
constexpr const char* strided_path = "conv2d/depthwise_strided.cl";
constexpr const char* filter_path = "conv2d/depthwise_filter.cl";
constexpr std::int64_t most_channels = 8, most_taps = 49;
constexpr std::int64_t most_span = 32;  ///< pixels of a row that a work-item keeps in registers
constexpr int least_group = 16;

Verdict depthwise_verdict(const Traits& device, const Problem& problem, std::int64_t group_in) {
    if (Verdict verdict = index_verdict(problem); !verdict) return verdict;
    if (device.max_work_group < least_group)
        return Verdict::no(cat("it wants work-groups of ", least_group,
                               " or more, the device allows ", device.max_work_group));
    const Geometry g = Geometry::of(problem);
    if (group_in > most_channels)
        return Verdict::no(cat("it is made for groups of at most ", most_channels,
                               " channels to sum over, here are ", group_in));
    if (g.kh * g.kw > most_taps)
        return Verdict::no(cat("it unrolls kernels of at most ", most_taps, " elements, here are ",
                               g.kh, " x ", g.kw));
    return Verdict::yes();
}

// Seconds when arithmetic runs at a share of the peak that such work reaches.
double direct_seconds(const Traits& device, const Problem& problem, int calls) {
    return roofline_seconds(device, problem, Geometry::of(problem).flops(),
                            device.wide_vectors ? 0.015 : 0.12, device.wide_vectors ? 0.2 : 0.5) +
           (calls - 1) * device.launch_us * 1e-6;
}

// The columns of dy that a strip of `outputs` columns of dx meets.
struct Reach {
    std::int64_t low, span;
    Reach(const Geometry& g, std::int64_t outputs) {
        const auto floor_div = [](std::int64_t a, std::int64_t b) {
            return a >= 0 ? a / b : -((-a + b - 1) / b);
        };
        low = floor_div(g.pl - (g.kw - 1) * g.dw, g.sw);
        span = floor_div(outputs - 1 + g.pl, g.sw) - low + 1;
    }
};

class Depthwise : public Engine {
  public:
    explicit Depthwise(bool backward) : backward_(backward) {}

    std::string_view name() const override {
        return backward_ ? "conv2d_backward_data.depthwise" : "conv2d.depthwise";
    }
    std::string_view op() const override { return backward_ ? backward_data_type : forward_type; }
    bool on_host() const override { return false; }
    std::vector<std::string> sources() const override { return {source_path, strided_path}; }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        const Geometry g = Geometry::of(problem);
        return depthwise_verdict(device, problem, backward_ ? g.group_out() : g.group_in());
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return direct_seconds(device, problem,
                              in_one(problem) ? 1 : static_cast<int>(jobs_of(problem).size()));
    }

    TuneSpace tune_space(const Traits&, const Problem& problem) const override {
        TuneSpace space{{"outputs", {1, 2, 4}}, {"rows", {1}}};
        if (Geometry::of(problem).dh == 1) space["rows"] = {1, 2, 4, 8};
        return space;
    }
    Tuning default_tuning(const Traits&, const Problem& problem) const override {
        const DenseJob job = jobs_of(problem).front();
        return {{"outputs", 1}, {"rows", job.dilate_h == 1 && job.out_h >= 4 ? 4 : 1}};
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        auto launch = std::make_unique<KernelLaunch>();
        if (in_one(problem)) {
            add_strided_call(*launch, context, problem);
            return launch;
        }
        for (const DenseJob& job : jobs_of(problem))
            add_job_call(*launch, context, problem, job, tuning.at("outputs"), tuning.at("rows"));
        return launch;
    }

  private:
    // Columns of dx that a work-item makes where one launch does all phases of the stride.
    static std::int64_t strip(const Geometry& g) { return g.sw * ceil_div(4, g.sw); }

    // Whether one launch does all phases: there are several, and their columns fit registers.
    bool in_one(const Problem& problem) const {
        const Geometry g = Geometry::of(problem);
        return backward_ && (g.sh > 1 || g.sw > 1) && strip(g) <= 16 &&
               Reach(g, strip(g)).span <= most_span;
    }

    void add_strided_call(KernelLaunch& launch, ContextImpl& context,
                          const Problem& problem) const {
        const Geometry g = Geometry::of(problem);
        const Reach reach(g, strip(g));
        const std::int64_t count = g.n * g.in * g.h * ceil_div(g.w, strip(g));
        const std::string options = define("KERNEL_H", g.kh) + define("KERNEL_W", g.kw) +
                                    define("STRIDE_H", g.sh) + define("STRIDE_W", g.sw) +
                                    define("DILATE_W", g.dw) + define("PAD_W", g.pl) +
                                    define("OUTPUTS", strip(g)) + cat(" -DLOW=(", reach.low, ")") +
                                    define("SPAN", reach.span) +
                                    " -DCOUNT_T=" + count_type(static_cast<std::uint64_t>(count));
        const auto program = context.build(
            {strided_path, with_epilogue(kernel_source(strided_path), problem.epilogue), options});
        KernelCall call(program, "depthwise_strided", rounded_range(context.traits(), count, 128));
        call.tensor("dy", 0)
            .tensor("weight", 1)
            .tensor("dx", static_cast<int>(problem.inputs.size()));
        call.scalar("count", count);
        const std::pair<const char*, std::int64_t> sizes[] = {{"in", g.in},
                                                              {"group_in", g.group_in()},
                                                              {"group_out", g.group_out()},
                                                              {"h", g.h},
                                                              {"w", g.w},
                                                              {"oh", g.oh},
                                                              {"ow", g.ow},
                                                              {"pad_h", g.pt},
                                                              {"dilate_h", g.dh}};
        for (const auto& [parameter, value] : sizes)
            call.scalar(parameter, static_cast<std::int32_t>(value));
        bind_epilogue(call, problem.epilogue);
        call.check();
        launch.add(std::move(call));
    }

    void add_job_call(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                      const DenseJob& job, std::int64_t outputs, std::int64_t rows) const {
        const std::int64_t least = 1;
        if (job.dilate_h != 1) rows = 1;
        const std::int64_t count = job.n * job.groups * job.group_out * ceil_div(job.out_h, rows) *
                                   ceil_div(job.out_w, outputs);
        const std::string options =
            define("KERNEL_H", std::max(job.kernel_h, least)) +
            define("KERNEL_W", std::max(job.kernel_w, least)) + define("STRIDE_H", job.stride_h) +
            define("STRIDE_W", job.stride_w) + define("DILATE_H", job.dilate_h) +
            define("DILATE_W", job.dilate_w) + define("ROWS", rows) + define("OUTPUTS", outputs) +
            " -DCOUNT_T=" + count_type(static_cast<std::uint64_t>(count));
        const auto program = context.build(
            {source_path, with_epilogue(kernel_source(source_path), problem.epilogue), options});
        KernelCall call(program, "depthwise", rounded_range(context.traits(), count, 128));
        const bool bias = !backward_ && has_bias(problem);
        call.tensor("x", 0).tensor("weight", 1).tensor("bias", bias ? 2 : 1);
        call.tensor("y", static_cast<int>(problem.inputs.size())).scalar("count", count);
        const std::pair<const char*, std::int64_t> sizes[] = {{"has_bias", bias},
                                                              {"taps_h", job.kernel_h},
                                                              {"groups", job.groups},
                                                              {"group_in", job.group_in},
                                                              {"group_out", job.group_out},
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
                                                              {"w_step", job.w_step}};
        for (const auto& [parameter, value] : sizes)
            call.scalar(parameter, static_cast<std::int32_t>(value));
        call.scalar("weight_group", job.weight_group).scalar("weight_out", job.weight_out);
        call.scalar("weight_in", job.weight_in);
        bind_epilogue(call, problem.epilogue);
        call.check();
        launch.add(std::move(call));
    }

    bool backward_;
};

class DepthwiseFilter : public Engine {
  public:
    std::string_view name() const override { return "conv2d_backward_filter.depthwise"; }
    std::string_view op() const override { return backward_filter_type; }
    bool on_host() const override { return false; }
    std::vector<std::string> sources() const override { return {filter_path, split_sum_source}; }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        const Geometry g = Geometry::of(problem);
        if (local_bytes(g, least_group) > device.local_bytes)
            return Verdict::no(cat("it wants ", local_bytes(g, least_group),
                                   " bytes of local memory, the device has ", device.local_bytes));
        if (span(g, 1) > 2 * most_span)
            return Verdict::no(cat("it keeps ", span(g, 1), " pixels of a row in registers, ",
                                   2 * most_span, " are too many"));
        return depthwise_verdict(device, problem, g.group_in());
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return direct_seconds(device, problem, 2);
    }

    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning&) const override {
        const std::int64_t count = parts(device, Geometry::of(problem)).count;
        return count <= 1
                   ? 0
                   : static_cast<std::uint64_t>(problem.outputs[0].shape.numel() * count) * 4;
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Geometry g = Geometry::of(problem);
        const Parts part = parts(context.traits(), g);
        const bool split = part.count > 1;
        const std::int64_t threads = group_size(context.traits(), g);
        std::int64_t outputs = g.ow >= 4 ? 4 : 1;
        if (span(g, outputs) > most_span) outputs = 1;
        const std::string options = define("KERNEL_H", g.kh) + define("KERNEL_W", g.kw) +
                                    define("STRIDE_W", g.sw) + define("DILATE_W", g.dw) +
                                    define("OUTPUTS", outputs) + define("SPAN", span(g, outputs)) +
                                    define("THREADS", threads);
        const auto program = context.build(
            {filter_path,
             with_epilogue(kernel_source(filter_path), split ? Epilogue{} : problem.epilogue),
             options});
        KernelCall call(program, "depthwise_filter",
                        rounded_range(context.traits(), g.out * g.group_in() * part.count * threads,
                                      static_cast<std::size_t>(threads)));
        const int result = static_cast<int>(problem.inputs.size());
        call.tensor("x", 0).tensor("dy", 1).tensor("dweight", split ? result + 1 : result);
        const std::pair<const char*, std::int64_t> sizes[] = {{"batch", g.n},
                                                              {"lines", part.lines},
                                                              {"out", g.out},
                                                              {"group_in", g.group_in()},
                                                              {"group_out", g.group_out()},
                                                              {"in", g.in},
                                                              {"h", g.h},
                                                              {"w", g.w},
                                                              {"oh", g.oh},
                                                              {"ow", g.ow},
                                                              {"sh", g.sh},
                                                              {"pt", g.pt},
                                                              {"pl", g.pl},
                                                              {"dh", g.dh}};
        for (const auto& [parameter, value] : sizes)
            call.scalar(parameter, static_cast<std::int32_t>(value));
        call.scalar("part_stride", split ? problem.outputs[0].shape.numel() : std::int64_t(0));
        if (!split) bind_epilogue(call, problem.epilogue);
        call.check();
        auto launch = std::make_unique<KernelLaunch>();
        launch->add(std::move(call));
        if (split) add_split_sum(*launch, context, problem, part.count);
        return launch;
    }

  private:
    struct Parts {
        std::int64_t count, lines;
    };
    // Pixels of a row of x that `outputs` neighbours of a row of dy meet.
    static std::int64_t span(const Geometry& g, std::int64_t outputs) {
        return (outputs - 1) * g.sw + (g.kw - 1) * g.dw + 1;
    }
    // The largest whose sums fit the local memory.
    static std::int64_t group_size(const Traits& device, const Geometry& g) {
        std::int64_t threads = 128;
        while (static_cast<std::uint64_t>(threads) > device.max_work_group ||
               local_bytes(g, threads) > device.local_bytes)
            threads /= 2;
        return threads;
    }
    static std::uint64_t local_bytes(const Geometry& g, std::int64_t threads) {
        return static_cast<std::uint64_t>(4 * g.kh * g.kw * (threads + 9));
    }
    // Enough work-groups to fill the device, each with at least some thousand pixels, and no more
    // than 256 thousand (the precision of a work-item's sum).
    static Parts parts(const Traits& device, const Geometry& g) {
        const std::int64_t lines = std::max<std::int64_t>(1, g.n * g.oh);
        const std::int64_t wanted =
            ceil_div(16 * std::max(device.compute_units, 1), g.out * g.group_in());
        const std::int64_t least = std::clamp<std::int64_t>(4096 / g.ow, 1, lines);
        const std::int64_t most =
            std::clamp<std::int64_t>((std::int64_t(1) << 18) / g.ow, 1, lines);
        const std::int64_t each = std::clamp(ceil_div(lines, wanted), std::min(least, most), most);
        return {ceil_div(lines, each), each};
    }
};

}  // namespace

void add_depthwise_engines(EngineRegistry& registry) {
    registry.add(std::make_unique<Depthwise>(false));
    registry.add(std::make_unique<Depthwise>(true));
    registry.add(std::make_unique<DepthwiseFilter>());
}

}  // namespace dlprim::conv2d
