// SPDX-License-Identifier: MIT
// conv2d.depthwise, conv2d_backward_data.depthwise and conv2d_backward_filter.depthwise: direct
// convolution on GPUs with plain images, for groups of few channels (kernels/conv2d/depthwise.cl
// and depthwise_filter.cl).
//
// The number of instructions per output limits their speed. So sizes are constants of the kernels,
// each work-item computes a block of several rows, and rows of pixels are loaded as vectors.
//
// Tuning: "outputs" and "rows", the columns and rows of a work-item's block.
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/gpu.hpp"

#include <algorithm>

namespace dlprim::conv2d {

namespace {

constexpr const char* source_path = "conv2d/depthwise.cl";
constexpr const char* filter_path = "conv2d/depthwise_filter.cl";
constexpr std::int64_t most_channels = 8, most_taps = 49, most_step = 8;
constexpr std::int64_t most_span = 64;  ///< pixels of a row that fit into a work-item's registers
constexpr std::int64_t most_products = 1024;  ///< the most unrolled products of a block
constexpr int least_group = 16;

// A share of the time to compile. Each size of images is a program. CPUs have engines whose
// programs serve all sizes, and for small images, where these need conversions of layouts, would
// choose this one.
double program_seconds(const Traits& device) {
    return device.wide_vectors ? 1e-3 : 0;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/// The rows or the columns of a convolution, as kernels/conv2d/depthwise_block.clh describes them.
struct Axis {
    std::int64_t kernel, stride, up, dilate, pad;
    std::int64_t x, y;  ///< sizes of the images

    /// The first position of x that a block at 0 reads, and the number of positions of a block of
    /// `size`.
    std::int64_t low() const { return -floor_div(pad, up); }
    std::int64_t span(std::int64_t size) const {
        return floor_div((size - 1) * stride + (kernel - 1) * dilate - pad, up) - low() + 1;
    }
    /// The block size of a tuning, rounded up to one that the kernels support.
    std::int64_t block(std::int64_t size) const { return ceil_div(size, up) * up; }
    /// The relative cost of blocks of `size`: results outside the image, and pixels that neighbours
    /// read too.
    double excess(std::int64_t size) const {
        const double share = static_cast<double>(ceil_div(y, size) * size) / static_cast<double>(y);
        const double own = static_cast<double>(size * stride) / static_cast<double>(up);
        return share * (1 + 0.5 * static_cast<double>((kernel - 1) * dilate) /
                                (static_cast<double>(up) * own));
    }
};

/// The convolution that an engine computes: the problem's, or its data gradient as a convolution of
/// dy.
struct Work {
    Axis rows, columns;
    std::int64_t n, groups, sum, make;  ///< images; input and output channels per group
    std::int64_t weight_group, weight_sum, weight_make;
    bool reversed;

    static Work forward(const Geometry& g) {
        const std::int64_t taps = g.kh * g.kw;
        return {{g.kh, g.sh, 1, g.dh, g.pt, g.h, g.oh},
                {g.kw, g.sw, 1, g.dw, g.pl, g.w, g.ow},
                g.n,
                g.groups,
                g.group_in(),
                g.group_out(),
                g.group_out() * g.group_in() * taps,
                taps,
                g.group_in() * taps,
                false};
    }
    static Work data_gradient(const Geometry& g) {
        const std::int64_t taps = g.kh * g.kw;
        return {{g.kh, 1, g.sh, g.dh, (g.kh - 1) * g.dh - g.pt, g.oh, g.h},
                {g.kw, 1, g.sw, g.dw, (g.kw - 1) * g.dw - g.pl, g.ow, g.w},
                g.n,
                g.groups,
                g.group_out(),
                g.group_in(),
                g.group_out() * g.group_in() * taps,
                g.group_in() * taps,
                taps,
                true};
    }

    std::int64_t products(std::int64_t block_rows, std::int64_t outputs) const {
        return block_rows * outputs * rows.kernel * columns.kernel / (rows.up * columns.up);
    }
    std::int64_t blocks(std::int64_t block_rows, std::int64_t outputs) const {
        return n * groups * make * ceil_div(rows.y, block_rows) * ceil_div(columns.y, outputs);
    }
};

/// The rows and columns of a work-item's block.
struct Block {
    std::int64_t rows, outputs;
    Block(const Work& work, const Tuning& tuning)
        : rows(work.rows.block(tuning.at("rows"))),
          outputs(work.columns.block(tuning.at("outputs"))) {}
};

/// Whether a work-item has registers for a block: compilers read all of its pixels first.
bool registers_fit(const Traits& device, const Work& work, std::int64_t rows,
                   std::int64_t outputs) {
    const std::int64_t pixels = work.rows.span(rows) * work.columns.span(outputs);
    return device.item_registers == 0 || pixels + rows * outputs <= device.item_registers;
}

/// The blocks to try, of those for which a work-item has registers.
TuneSpace block_space(const Traits& device, const Work& work,
                      const std::vector<std::int64_t>& outputs) {
    const auto sizes = [](const Axis& axis, const std::vector<std::int64_t>& wanted) {
        std::vector<std::int64_t> all;
        for (const std::int64_t size : wanted)
            if (all.empty() || all.back() != axis.block(size)) all.push_back(axis.block(size));
        return all;
    };
    TuneSpace space;
    for (const std::int64_t across : sizes(work.columns, outputs))
        for (const std::int64_t rows : sizes(work.rows, {1, 2, 4, 7, 8}))
            if (registers_fit(device, work, rows, across))
                space.tiles.push_back({{"outputs", across}, {"rows", rows}});
    return space;
}

/// Vectors as wide as the image's rows allow, and as many rows as leave at least `least` blocks.
Tuning default_block(const Traits& device, const Work& work, std::int64_t least) {
    const std::int64_t w = work.columns.y;
    std::int64_t outputs = work.columns.block(w % 4 == 0 ? 4 : w % 2 == 0 || w > 16 ? 2 : 1);
    if (work.columns.span(outputs) > most_span / 2) outputs = work.columns.block(1);
    std::int64_t rows = work.rows.block(1);
    for (const std::int64_t size : {2, 4, 7, 8}) {
        const std::int64_t block = work.rows.block(size);
        if (work.rows.excess(block) < work.rows.excess(rows) &&
            work.blocks(block, outputs) >= least &&
            work.products(block, outputs) <= most_products &&
            registers_fit(device, work, block, outputs))
            rows = block;
    }
    return {{"outputs", outputs}, {"rows", rows}};
}

/// The widest vector of 4, 2 or 1 elements that divides both.
std::int64_t vector_width(std::int64_t a, std::int64_t b) {
    return a % 4 == 0 && b % 4 == 0 ? 4 : a % 2 == 0 && b % 2 == 0 ? 2 : 1;
}

std::string define_signed(std::string_view name, std::int64_t value) {
    return cat(" -D", name, "=(", value, ")");
}

/// The defines that depthwise_block.clh needs.
std::string block_defines(const Work& work, const Block& block) {
    const Axis &h = work.rows, &w = work.columns;
    const std::int64_t vector = vector_width(w.x, block.outputs * w.stride / w.up);
    return define("KERNEL_H", h.kernel) + define("KERNEL_W", w.kernel) +
           define("STRIDE_H", h.stride) + define("STRIDE_W", w.stride) + define("UP_H", h.up) +
           define("UP_W", w.up) + define("DILATE_H", h.dilate) + define("DILATE_W", w.dilate) +
           define_signed("PAD_H", h.pad) + define_signed("PAD_W", w.pad) + define("X_H", h.x) +
           define("X_W", w.x) + define("Y_H", h.y) + define("Y_W", w.y) +
           define("ROWS", block.rows) + define("OUTPUTS", block.outputs) +
           define_signed("LOW_H", h.low()) + define_signed("LOW_W", w.low()) +
           define("SPAN_H", h.span(block.rows)) + define("SPAN_W", w.span(block.outputs)) +
           define("VX", vector) + define_signed("CHUNK", floor_div(w.low(), vector)) +
           define("VY", vector_width(w.y, block.outputs)) + define("GROUPS", work.groups) +
           define("SUM", work.sum) + define("MAKE", work.make);
}

Verdict depthwise_verdict(const Traits& device, const Problem& problem, const Work& work) {
    if (Verdict verdict = index_verdict(problem); !verdict) return verdict;
    if (device.max_work_group < least_group)
        return Verdict::no(cat("it needs work-groups of at least ", least_group,
                               " work-items, and the device allows ", device.max_work_group));
    if (work.sum > most_channels)
        return Verdict::no(
            cat("it sums over at most ", most_channels, " channels in a group, not ", work.sum));
    const Axis &h = work.rows, &w = work.columns;
    if (h.kernel * w.kernel > most_taps)
        return Verdict::no(cat("it supports kernels of at most ", most_taps, " elements, not ",
                               h.kernel, " x ", w.kernel));
    if (h.up > most_step || w.up > most_step)
        return Verdict::no(
            cat("it supports strides of at most ", most_step, ", not ", h.up, " and ", w.up));
    if (w.span(w.block(1)) > most_span)
        return Verdict::no(cat("it would keep ", w.span(w.block(1)),
                               " pixels of a row in registers, and at most ", most_span, " fit"));
    return Verdict::yes();
}

// Seconds if arithmetic runs at the share of the peak that such kernels reach.
double direct_seconds(const Traits& device, const Problem& problem, int calls) {
    return roofline_seconds(device, problem, Geometry::of(problem).flops(),
                            device.wide_vectors ? 0.015 : 0.12, device.wide_vectors ? 0.2 : 0.5) +
           (calls - 1) * device.launch_us * 1e-6;
}

class Depthwise : public ConvolutionEngine {
  public:
    explicit Depthwise(const char* op) : ConvolutionEngine(op, "depthwise") {}

    std::vector<std::string> sources() const override { return {source_path}; }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        return depthwise_verdict(device, problem, work_of(problem));
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return direct_seconds(device, problem, 1) + program_seconds(device);
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        return block_space(device, work_of(problem), {1, 2, 4, 8});
    }
    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        // At least as many blocks as keep the device busy: 16 warps per compute unit.
        return default_block(device, work_of(problem), std::int64_t{512} * device.compute_units);
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Work work = work_of(problem);
        const Block block(work, tuning);
        const std::int64_t count = work.blocks(block.rows, block.outputs);
        const std::string options =
            block_defines(work, block) + define("WEIGHT_GROUP", work.weight_group) +
            define("WEIGHT_SUM", work.weight_sum) + define("WEIGHT_MAKE", work.weight_make) +
            define("REVERSED", work.reversed) +
            " -DCOUNT_T=" + count_type(static_cast<std::uint64_t>(count));
        const auto program = context.build(
            {source_path, with_epilogue(kernel_source(source_path), problem.epilogue), options});
        KernelCall call(program, "depthwise", rounded_range(context.traits(), count, 128));
        const bool bias = !backward_ && has_bias(problem);
        call.tensor("x", 0).tensor("weight", 1).tensor("bias", bias ? 2 : 1);
        call.tensor("y", static_cast<int>(problem.inputs.size())).scalar("count", count);
        call.size("has_bias", bias);
        bind_epilogue(call, problem.epilogue);
        return std::make_unique<KernelLaunch>(std::move(call));
    }

  private:
    Work work_of(const Problem& problem) const {
        const Geometry g = Geometry::of(problem);
        return backward_ ? Work::data_gradient(g) : Work::forward(g);
    }
};

class DepthwiseFilter : public ConvolutionEngine {
  public:
    DepthwiseFilter() : ConvolutionEngine(backward_filter_type, "depthwise") {}

    std::vector<std::string> sources() const override { return {filter_path, parts_sum_source}; }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        const Geometry g = Geometry::of(problem);
        if (local_bytes(g, least_group) > device.local_bytes)
            return Verdict::no(cat("it needs ", local_bytes(g, least_group),
                                   " bytes of local memory, and the device has ",
                                   device.local_bytes));
        return depthwise_verdict(device, problem, Work::forward(g));
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        return direct_seconds(device, problem, parts(device, problem, tuning).count > 1 ? 2 : 1) +
               program_seconds(device);
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        return block_space(device, Work::forward(Geometry::of(problem)), {1, 2, 4});
    }
    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        return default_block(device, Work::forward(Geometry::of(problem)), 1);
    }

    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning& tuning) const override {
        return split_bytes(problem, parts(device, problem, tuning).count);
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Geometry g = Geometry::of(problem);
        const Work work = Work::forward(g);
        const Block block(work, tuning);
        const Parts part = parts(context.traits(), problem, tuning);
        const bool split = part.count > 1;
        const std::int64_t threads = group_size(context.traits(), g);
        const std::string options = block_defines(work, block) + define("THREADS", threads);
        const auto program = context.build(
            {filter_path,
             with_epilogue(kernel_source(filter_path), split ? Epilogue{} : problem.epilogue),
             options});
        KernelCall call(program, "depthwise_filter",
                        rounded_range(context.traits(), g.out * g.group_in() * part.count * threads,
                                      static_cast<std::size_t>(threads)));
        const int result = static_cast<int>(problem.inputs.size());
        call.tensor("x", 0).tensor("dy", 1).tensor("dweight", split ? result + 1 : result);
        call.size("bands", g.n * ceil_div(g.oh, block.rows));
        call.size("lines", part.lines);
        call.scalar("part_stride", split ? problem.outputs[0].shape.numel() : std::int64_t(0));
        if (!split) bind_epilogue(call, problem.epilogue);
        auto launch = std::make_unique<KernelLaunch>();
        launch->add(std::move(call));
        if (split) add_split_sum(*launch, context, problem, part.count);
        return launch;
    }

  private:
    struct Parts {
        std::int64_t count, lines;
    };
    // The largest work-group whose sums fit into local memory.
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
    // One part if the filters alone give every compute unit two work-groups. Otherwise enough parts
    // to fill the device. Each has at least 16 thousand pixels, and at most 256 thousand, which
    // limits the rounding error of a work-item's sum.
    static Parts parts(const Traits& device, const Problem& problem, const Tuning& tuning) {
        const Geometry g = Geometry::of(problem);
        const std::int64_t rows = Block(Work::forward(g), tuning).rows;
        const std::int64_t lines = std::max<std::int64_t>(1, g.n * ceil_div(g.oh, rows));
        const std::int64_t filters = g.out * g.group_in(),
                           units = std::max(device.compute_units, 1);
        const std::int64_t wanted = filters >= 2 * units ? 1 : ceil_div(8 * units, filters);
        const std::int64_t least = std::clamp<std::int64_t>(16384 / (g.ow * rows), 1, lines);
        const std::int64_t most =
            std::clamp<std::int64_t>((std::int64_t(1) << 18) / (g.ow * rows), 1, lines);
        const std::int64_t each = std::clamp(ceil_div(lines, wanted), std::min(least, most), most);
        return {ceil_div(lines, each), each};
    }
};

}  // namespace

void add_depthwise_engines(EngineRegistry& registry) {
    for (const char* op : {forward_type, backward_data_type})
        registry.add(std::make_unique<Depthwise>(op));
    registry.add(std::make_unique<DepthwiseFilter>());
}

}  // namespace dlprim::conv2d
