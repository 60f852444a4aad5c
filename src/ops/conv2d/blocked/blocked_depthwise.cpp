// SPDX-License-Identifier: MIT
// conv2d.blocked_depthwise, conv2d_backward_data.blocked_depthwise and
// conv2d_backward_filter.blocked_depthwise: convolutions with one filter per channel on CPUs, with
// channels as vector lanes (kernels/conv2d/blocked_depthwise*.cl).
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/kernel_options.hpp"
#include "ops/conv2d/blocked/blocked.hpp"
#include "ops/conv2d/engines.hpp"

#include <algorithm>
#include <limits>

namespace dlprim::conv2d {

namespace {

Verdict depthwise_verdict(const Geometry& g) {
    if (g.group_in() != 1 || g.group_out() != 1)
        return Verdict::no(cat("it needs groups of one input and one output channel, not ",
                               g.group_in(), " and ", g.group_out()));
    return Verdict::yes();
}

double depthwise_seconds(const Traits& device, const Problem& problem) {
    return roofline_seconds(device, problem, lying_geometry(problem).flops(), 0.2, 0.5);
}

// A job with a single group, in which output channel c reads input channel c.
DenseJob depthwise_job(DenseJob job, const Geometry& g) {
    job.groups = 1;
    job.group_out = g.in;
    job.group_in = 1;
    job.weight_group = job.weight_in = 0;
    job.weight_out = g.kh * g.kw;
    return job;
}

class Depthwise : public ConvolutionEngine {
  public:
    explicit Depthwise(const char* op) : ConvolutionEngine(op, "blocked_depthwise") {}

    std::vector<std::string> sources() const override {
        return {"conv2d/blocked_depthwise.cl", "conv2d/blocked_depthwise3.cl",
                "conv2d/blocked_pack.cl"};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = blocked_verdict(device, problem); !verdict) return verdict;
        return depthwise_verdict(lying_geometry(problem));
    }

    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        LayoutChoice choice = LayoutChoice::all(problem, Layout::blocked(device.vector_width));
        const std::vector<DenseJob> all = jobs(problem);
        std::uint64_t bytes = 0;
        for (const DenseJob& job : all) bytes += weight_bytes(device, job);
        std::string tag = cat("conv2d.blocked_depthwise:", device.vector_width);
        for (const DenseJob& job : all)
            tag += cat('h', job.kernel_h, '@', job.h0, '/', job.h_step, 'w', job.kernel_w, '@',
                       job.w0, '/', job.w_step);
        choice.inputs[1] = Layout::packed(tag, std::max<std::uint64_t>(bytes, 4));
        if (!backward_ && has_bias(problem)) choice.inputs[2] = Layout::plain();
        return {choice};
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return depthwise_seconds(device, problem);
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        auto launch = std::make_unique<KernelLaunch>();
        std::uint64_t weight = 0;
        for (const DenseJob& job : jobs(problem)) {
            add(*launch, context, problem, job, weight);
            weight += weight_bytes(context.traits(), job);
        }
        return launch;
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        auto launch = std::make_unique<KernelLaunch>();
        std::uint64_t at = 0;
        for (const DenseJob& job : jobs(problem)) {
            if (job.kernel_h * job.kernel_w == 0) continue;
            add_packing(*launch, context, job, 0, 1, 1, at);
            at += weight_bytes(context.traits(), job);
        }
        return launch;
    }

  private:
    std::vector<DenseJob> jobs(const Problem& problem) const {
        const Geometry g = lying_geometry(problem);
        std::vector<DenseJob> all =
            backward_ ? backward_data_jobs(g) : std::vector<DenseJob>{forward_job(g)};
        for (DenseJob& job : all) job = depthwise_job(job, g);
        return all;
    }

    static std::uint64_t weight_bytes(const Traits& device, const DenseJob& job) {
        const std::int64_t lanes =
            ceil_div(job.group_out, device.vector_width) * device.vector_width;
        return static_cast<std::uint64_t>(4 * lanes * job.kernel_h * job.kernel_w);
    }

    /// Whether kernels/conv2d/blocked_depthwise3.cl supports the job.
    static bool is_bordered_3x3(const DenseJob& job) {
        const std::int64_t s = job.stride_w;
        return job.kernel_h == 3 && job.kernel_w == 3 && (s == 1 || s == 2) && job.stride_h == s &&
               job.dilate_h == 1 && job.dilate_w == 1 && job.pad_h == 1 && job.pad_w == 1 &&
               job.out_h == ceil_div(job.x_h, s) && job.out_w == ceil_div(job.x_w, s) &&
               job.row_step == 1 && job.column_step == 1 && job.y_h == job.out_h &&
               job.y_w == job.out_w;
    }

    void add(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
             const DenseJob& job, std::uint64_t weight) const {
        const Traits& device = context.traits();
        const int v = device.vector_width;
        // Columns [first, last) of y whose filters are completely inside x.
        const std::int64_t reach = (job.kernel_w - 1) * job.dilate_w;
        std::int64_t first =
            std::min(job.out_w, ceil_div(std::max<std::int64_t>(job.pad_w, 0), job.stride_w));
        const std::int64_t room = job.x_w - 1 - reach + job.pad_w;
        std::int64_t last = room < 0 ? 0 : std::min(job.out_w, room / job.stride_w + 1);
        if (job.kernel_w < 1 || last <= first) first = last = 0;
        // The tiles that the kernel has. Each has a cost of some cycles.
        std::int64_t tile_pixels = 1;
        double best = std::numeric_limits<double>::infinity();
        for (const std::int64_t size : {1, 2, 3, 5, 6, 9, 13}) {
            if (size > std::max<std::int64_t>(last - first, 1)) continue;
            const double cost =
                static_cast<double>(ceil_div(last - first, size)) * (static_cast<double>(size) + 2);
            if (cost < best) best = cost, tile_pixels = size;
        }
        const std::int64_t blocks = ceil_div(job.group_out, v);
        // Enough work-items for every core, each with at least some thousand vectors if there are
        // that many.
        const std::int64_t wanted =
            std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(job.out_w, 1));
        const std::int64_t planes = job.n * blocks;
        const std::int64_t share = std::max<std::int64_t>(
            1, planes * job.out_h / (16 * std::max(1, device.compute_units)));
        const std::int64_t row_items = ceil_div(job.out_h, std::min({wanted, share, job.out_h}));
        const std::int64_t rows_per_item = ceil_div(job.out_h, row_items);  // of equal size
        const bool bias = !backward_ && has_bias(problem);
        const bool bordered_3x3 = is_bordered_3x3(job);
        // Lines that come from memory are prefetched two pages ahead.
        constexpr int ahead = 2048;
        const std::string options = define("V", v) + define("S", job.stride_w) +
                                    (bordered_3x3 ? define("AHEAD", ahead) : std::string());
        const auto program =
            conv_program(context, bordered_3x3 ? "blocked_depthwise3.cl" : "blocked_depthwise.cl",
                         options, problem.epilogue);
        KernelCall call(program, bordered_3x3 ? "depthwise3" : "depthwise",
                        single_items(planes * row_items));
        call.tensor("x", 0).tensor_at("w", 1, weight).tensor("bias", bias ? 2 : 0);
        call.tensor("y", static_cast<int>(problem.inputs.size()));
        bind_epilogue(call, problem.epilogue);
        call.sizes({{"row_items", row_items},
                    {"rows_per_item", rows_per_item},
                    {"channels", job.group_out},
                    {"blocks", blocks},
                    {"x_h", job.x_h},
                    {"x_w", job.x_w},
                    {"y_h", job.y_h},
                    {"y_w", job.y_w},
                    {"has_bias", bias}});
        if (!bordered_3x3) {
            call.size("inner0", first);
            call.size("inner1", last);
            call.size("tile_pixels", tile_pixels);
            bind_window(call, job);
        }
        launch.add(std::move(call));
    }
};

class DepthwiseFilter : public ConvolutionEngine {
  public:
    DepthwiseFilter() : ConvolutionEngine(backward_filter_type, "blocked_depthwise") {}

    std::vector<std::string> sources() const override {
        return {"conv2d/blocked_depthwise_filter.cl"};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = filter_verdict(device, problem); !verdict) return verdict;
        const Geometry g = Geometry::of(problem);
        if (Verdict verdict = depthwise_verdict(g); !verdict) return verdict;
        if (g.kw > 8)
            return Verdict::no(cat("it supports kernels of at most 8 columns, not ", g.kw));
        return Verdict::yes();
    }

    std::vector<LayoutChoice> layouts(const Traits& device, const Problem&) const override {
        const Layout blocked = Layout::blocked(device.vector_width);
        return {{{blocked, blocked}, {Layout::plain()}}};
    }

    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning&) const override {
        const Geometry g = Geometry::of(problem);
        const std::int64_t lanes = ceil_div(g.in, device.vector_width) * device.vector_width;
        return static_cast<std::uint64_t>(4 * row_split(device, g).splits * lanes * g.kh * g.kw);
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return depthwise_seconds(device, problem);
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Traits& device = context.traits();
        const Geometry g = Geometry::of(problem);
        const RowSplit split = row_split(device, g);
        const std::int64_t blocks = ceil_div(g.in, device.vector_width);
        const auto program = conv_program(context, "blocked_depthwise_filter.cl",
                                          define("V", device.vector_width) + define("K", g.kw));
        KernelCall call(program, "depthwise_filter", single_items(split.splits * blocks));
        call.tensor("x", 0).tensor("dy", 1).tensor("sums", 3);
        call.sizes({{"splits", split.splits},
                    {"blocks", blocks},
                    {"batch", g.n},
                    {"chunks", split.chunks},
                    {"chunk_rows", split.rows}});
        bind_geometry(call, g);
        KernelCall sum(program, "depthwise_filter_sum", single_items(blocks));
        sum.tensor("sums", 3).tensor("dw", 2);
        sum.sizes({{"splits", split.splits},
                   {"channels", g.in},
                   {"blocks", blocks},
                   {"taps", g.kh * g.kw}});
        auto launch = std::make_unique<KernelLaunch>();
        launch->add(std::move(call)).add(std::move(sum));
        return launch;
    }

  private:
    static RowSplit row_split(const Traits& device, const Geometry& g) {
        return split_rows(device, g, ceil_div(g.in, device.vector_width), 512,
                          g.kh * g.kw * 4 * device.vector_width);
    }
};

}  // namespace

void add_blocked_depthwise_engines(EngineRegistry& registry) {
    for (const char* op : {forward_type, backward_data_type})
        registry.add(std::make_unique<Depthwise>(op));
    registry.add(std::make_unique<DepthwiseFilter>());
}

}  // namespace dlprim::conv2d
