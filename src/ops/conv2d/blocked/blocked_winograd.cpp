// SPDX-License-Identifier: MIT
// conv2d.blocked_winograd and conv2d_backward_data.blocked_winograd: 3x3 convolutions of stride 1
// and their data gradients on CPUs by Winograd's F(4x4, 3x3), by F(6x6, 3x3), which needs fewer
// multiplications, or by F(4x2, 3x3) and F(2x2, 3x3), which have smaller rounding errors
// (kernels/conv2d/blocked_winograd.cl).
//
// The errors of F(6x6) are larger than fp32 allows (docs/engines/winograd.md), so it is used only
// for inference of precision tf32. The tile size determines how weights are packed. Where there are
// two sizes, each is a layout of the engine.
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/kernel_options.hpp"
#include "ops/conv2d/blocked/blocked.hpp"
#include "ops/conv2d/engines.hpp"

#include <algorithm>
#include <limits>

namespace dlprim::conv2d {

namespace {

// Output pixels of a tile.
struct Size {
    std::int64_t rows, columns;

    std::int64_t span_h() const { return rows + 2; }
    std::int64_t span_w() const { return columns + 2; }
    std::int64_t points() const { return span_h() * span_w(); }
};

constexpr std::string_view tag = "conv2d.blocked_winograd:";

// How a problem is divided; see the kernel.
struct Plan {
    Size size;
    Tile tile;  // register tile: blocks of output channels x tiles of pixels
    int panel_tiles;
    std::int64_t in_blocks, out_blocks, slabs;
    std::int64_t tile_rows, tile_columns, tiles;
    std::int64_t group_tiles, splits, tasks, items;
    std::int64_t v_row, m_row;  // floats
    double seconds;
};

// Computes the remaining numbers of a plan whose tile and groups are set, and its seconds. The
// constants were fitted on a CPU with AVX-512, relative to the estimate of the direct engine.
void settle(const Traits& device, Plan& plan) {
    const int v = device.vector_width;
    const int blocks = plan.tile.vectors;
    const std::int64_t cores = std::max(1, device.compute_units);
    plan.slabs = ceil_div(plan.out_blocks, blocks);
    plan.tasks = ceil_div(plan.tiles, plan.group_tiles) * plan.splits;
    plan.v_row = odd(plan.in_blocks * plan.group_tiles) * v;
    plan.m_row = odd(blocks * plan.group_tiles) * v;
    // Several items per core, so that cores finish together, as long as they need little memory.
    const std::int64_t part = 4 * plan.size.points() * (plan.v_row + plan.m_row);
    plan.items = std::min(plan.tasks, cores * std::clamp<std::int64_t>((4 << 20) / part, 1, 4));

    const double flops = std::max(1.0, device.gflops) * 1e9 * 0.75 / static_cast<double>(cores);
    const double bytes = std::max(1.0, device.gbytes_per_s) * 1e9 / static_cast<double>(cores);
    const std::int64_t slabs = ceil_div(plan.slabs, plan.splits), points = plan.size.points();
    // Cycles per input lane of all panels, of 4 * v flops each.
    const std::int64_t count = std::min(plan.group_tiles, plan.tiles);
    const double lane = tiles_cycles(plan.tile, plan.panel_tiles, count);
    const auto lanes = static_cast<double>(points * plan.in_blocks * v * slabs);
    const auto transforms = static_cast<double>(count * (plan.in_blocks + slabs * blocks));
    const auto weights = static_cast<double>(4 * points * plan.in_blocks * v * v * blocks);
    const auto v_bytes = static_cast<double>(4 * points * plan.in_blocks * count * v);
    const auto m_bytes = static_cast<double>(4 * points * blocks * count * v);
    const auto slabs_here = static_cast<double>(slabs);
    // The points of a tile are far apart in memory. With 64 points, each costs more to write and
    // read than with 36, and so do weights from memory.
    const bool many = points > 36;
    const double point = many ? 58 : 42;
    double task =
        lane * lanes * 4 * v / flops + transforms * point * static_cast<double>(points) * v / flops;
    // Data that do not fit into the L2 cache, which is small on processors without AVX-512, come
    // from the L3 cache or from memory. How fast differs much between processors: from memory 17 to
    // 58 GB/s for two cores of servers where the rule of the trait says 20.
    const double cache = v >= 16 ? 1 << 20 : 1 << 19;
    const double third_rate = v >= 16 ? 5 : 2.6;
    constexpr double third = 4 << 20, beyond = 16 << 20;
    const double all_weights = weights * static_cast<double>(plan.slabs);
    if (all_weights + v_bytes + m_bytes > cache)
        task += weights * slabs_here /
                (bytes * (all_weights > beyond  ? (many ? 1.2 : 1.6)
                          : all_weights > third ? 2
                                                : third_rate));
    if (v_bytes + m_bytes > cache) task += v_bytes * (slabs_here + 2) / (bytes * third_rate);
    plan.seconds = task * static_cast<double>(ceil_div(plan.tasks, cores));
}

// The fastest plan according to the model.
Plan plan_of(const Traits& device, const DenseJob& job, Size size) {
    const int v = device.vector_width;
    Plan plan{};
    plan.size = size;
    plan.in_blocks = ceil_div(job.group_in, v);
    plan.out_blocks = ceil_div(job.group_out, v);
    plan.tile_rows = ceil_div(job.out_h, size.rows);
    plan.tile_columns = ceil_div(job.out_w, size.columns);
    plan.tiles = job.n * plan.tile_rows * plan.tile_columns;
    Plan best{};
    best.seconds = std::numeric_limits<double>::infinity();
    // The tile of registers depends on channels only, so images of all sizes share programs and
    // packed weights.
    plan.tile = job_tile(device, job);
    for (const int panel : tile_sizes(plan.tile))
        for (const std::int64_t panels : {1, 2, 3, 4, 6, 8, 10, 12, 16}) {
            plan.panel_tiles = panel;
            const std::int64_t groups =
                std::max<std::int64_t>(1, ceil_div(plan.tiles, panels * panel));
            // Groups of equal size.
            plan.group_tiles =
                std::max<std::int64_t>(1, ceil_div(ceil_div(plan.tiles, groups), panel)) * panel;
            for (const std::int64_t splits : {1, 2, 4, 8, 16}) {
                if (splits > ceil_div(plan.out_blocks, plan.tile.vectors)) continue;
                plan.splits = splits;
                settle(device, plan);
                if (plan.seconds < best.seconds) best = plan;
            }
        }
    return best;
}

// Seconds for all images. Transformed weights of few channels stay in the caches, and the time of
// an output pixel is then taken as that of an image of 56 x 56: whether this engine is chosen
// follows from the numbers of channels, and an image of another size finds its programs compiled.
// Weights of many channels are read from memory, which only images of many pixels repay.
double seconds_of(const Traits& device, const DenseJob& job, Size size) {
    const Plan plan = plan_of(device, job, size);
    constexpr std::int64_t cached = 1 << 20, side = 56;
    if (size.points() * job.group_in * job.group_out > cached) return plan.seconds;
    DenseJob usual = job;
    usual.n = 1;
    usual.out_h = usual.out_w = side;
    return plan_of(device, usual, size).seconds / (side * side) *
           static_cast<double>(job.n * job.out_h * job.out_w);
}

class BlockedWinograd : public ConvolutionEngine {
  public:
    explicit BlockedWinograd(const char* op) : ConvolutionEngine(op, "blocked_winograd") {}

    bool computes_in(Precision precision) const override {
        return precision == Precision::fp32 || (!backward_ && precision == Precision::tf32);
    }
    std::vector<std::string> sources() const override {
        return {"conv2d/blocked_winograd.cl", "conv2d/blocked_winograd_pack.cl"};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = blocked_verdict(device, problem); !verdict) return verdict;
        return winograd_verdict(device, Geometry::of(problem));
    }

    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        const int v = device.vector_width;
        const DenseJob job = job_of(problem);
        std::vector<LayoutChoice> choices;
        for (const Size size : sizes_of(problem)) {
            const Plan plan = plan_of(device, job, size);
            LayoutChoice choice = LayoutChoice::all(problem, Layout::blocked(v));
            const std::int64_t bytes =
                4 * size.points() * plan.slabs * plan.tile.vectors * plan.in_blocks * v * v;
            choice.inputs[1] = Layout::packed(cat(tag, size.rows, 'x', size.columns, ',', v, 'o',
                                                  plan.tile.vectors, backward_ ? "b" : "f"),
                                              static_cast<std::uint64_t>(bytes));
            if (!backward_ && has_bias(problem)) choice.inputs[2] = Layout::plain();
            choice.variant = cat(size.rows, 'x', size.columns);
            choices.push_back(std::move(choice));
        }
        return choices;
    }

    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning&) const override {
        const Plan plan = plan_of(device, job_of(problem), size_of(problem));
        return static_cast<std::uint64_t>(4 * plan.items * plan.size.points() *
                                          (plan.v_row + plan.m_row));
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        // The time of a plan has that of its weights, so the bound is the time of pixels alone.
        Problem pixels = problem;
        pixels.inputs.resize(1);
        return std::max(
            seconds_of(device, job_of(problem), size_of(problem)) + device.launch_us * 1e-6,
            roofline_seconds(device, pixels, 0, 1));
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Traits& device = context.traits();
        const DenseJob job = job_of(problem);
        const Plan plan = plan_of(device, job, size_of(problem));
        const bool bias = !backward_ && has_bias(problem);
        const auto program = conv_program(
            context, has_packing(problem) ? "blocked_winograd_training.cl" : "blocked_winograd.cl",
            options_of(device, plan), problem.epilogue);
        KernelCall call(program, "winograd", single_items(plan.items));
        const int y = static_cast<int>(problem.inputs.size());
        call.tensor("x", 0).tensor("w", 1).tensor("bias", bias ? 2 : 0);
        call.tensor("y", y).tensor("scratch", y + 1);
        bind_epilogue(call, problem.epilogue);
        call.sizes({{"items", plan.items},
                    {"tasks", plan.tasks},
                    {"splits", plan.splits},
                    {"slabs", plan.slabs},
                    {"panel_tiles", plan.panel_tiles},
                    {"group_tiles", plan.group_tiles},
                    {"v_row", plan.v_row},
                    {"m_row", plan.m_row},
                    {"tiles", plan.tiles},
                    {"tile_rows", plan.tile_rows},
                    {"tile_columns", plan.tile_columns},
                    {"in_blocks", plan.in_blocks},
                    {"out", job.group_out},
                    {"out_blocks", plan.out_blocks},
                    {"x_h", job.x_h},
                    {"x_w", job.x_w},
                    {"y_h", job.y_h},
                    {"y_w", job.y_w},
                    {"pad_h", job.pad_h},
                    {"pad_w", job.pad_w},
                    {"has_bias", bias}});
        return std::make_unique<KernelLaunch>(std::move(call));
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        const DenseJob job = job_of(problem);
        const Traits& device = context.traits();
        const Plan plan = plan_of(device, job, size_of(problem));
        const auto program =
            has_packing(problem)
                ? conv_program(context, "blocked_winograd_training.cl", options_of(device, plan))
                : conv_program(context, "blocked_winograd_pack.cl",
                               define("V", device.vector_width) + size_options(plan.size));
        KernelCall call(program, "winograd_pack", single_items(plan.slabs * plan.in_blocks));
        call.tensor("w", 0).tensor("packed", 1);
        call.sizes({{"out_vectors", plan.tile.vectors},
                    {"in_blocks", plan.in_blocks},
                    {"out", job.group_out},
                    {"in", job.group_in},
                    {"stride_out", job.weight_out},
                    {"stride_in", job.weight_in},
                    {"h0", job.h0},
                    {"h_step", job.h_step * 3},
                    {"w0", job.w0},
                    {"w_step", job.w_step}});
        return std::make_unique<KernelLaunch>(std::move(call));
    }

  private:
    DenseJob job_of(const Problem& problem) const {
        const Geometry g = Geometry::of(problem);
        return backward_ ? backward_data_jobs(g).at(0) : forward_job(g);
    }
    // Whether the convolution and its packing share a program. In inference chains run the
    // convolution, and what is fused to it differs between layers that pack alike.
    static bool has_packing(const Problem& problem) {
        return problem.phase == Phase::training && problem.epilogue.empty();
    }
    static std::string options_of(const Traits& device, const Plan& plan) {
        return define("V", device.vector_width) + define("P", plan.tile.pixels) +
               define("O", plan.tile.vectors) + size_options(plan.size);
    }
    static std::string size_options(const Size& size) {
        return define("ROWS", size.rows) + define("COLUMNS", size.columns) +
               define("SPAN_H", size.span_h()) + define("SPAN_W", size.span_w());
    }
    // The tile sizes to choose from. Batch norms amplify the rounding errors of forward layers:
    // with the larger tiles, training a net as deep as inception_v3 would exceed its error bounds.
    // Programs that call one layer after the other, as PyTorch's do, are compared with gradients of
    // direct convolutions, than which tiles of 2x2 round less.
    std::vector<Size> sizes_of(const Problem& problem) const {
        if (backward_) return {{4, 4}};
        if (problem.by_itself) return {{2, 2}};
        if (problem.phase == Phase::training) return {{4, 2}};
        if (problem.precision == Precision::fp32) return {{4, 4}};
        return {{4, 4}, {6, 6}};
    }

    // The tile size that the problem's layout implies.
    Size size_of(const Problem& problem) const {
        const std::vector<Size> sizes = sizes_of(problem);
        const std::string& name = problem.inputs[1].layout.tag;
        for (const Size& size : sizes)
            if (name.starts_with(cat(tag, size.rows, 'x', size.columns, ','))) return size;
        return sizes.front();
    }
};

}  // namespace

void add_blocked_winograd_engines(EngineRegistry& registry) {
    for (const char* op : {forward_type, backward_data_type})
        registry.add(std::make_unique<BlockedWinograd>(op));
}

}  // namespace dlprim::conv2d
