// SPDX-License-Identifier: MIT
// conv2d.blocked_first: convolutions on CPUs from a plain input of few channels to a blocked
// output, such as a network's first layer (kernels/conv2d/blocked_first.cl).
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/kernel_options.hpp"
#include "ops/conv2d/blocked/blocked.hpp"
#include "ops/conv2d/engines.hpp"

#include <algorithm>

namespace dlprim::conv2d {

namespace {

// How the rows of an image are divided among work-items, and the sizes that follow.
struct Plan {
    Tile tile;
    int tile_pixels;
    std::int64_t out_blocks, slabs, rows, row_items, items, row_length;
};

Plan plan_of(const Traits& device, const Geometry& g) {
    Plan plan{};
    plan.out_blocks = ceil_div(g.out, device.vector_width);
    plan.tile = job_tile(device, forward_job(g));
    plan.tile_pixels = plan.tile.pixels;
    for (const int size : tile_sizes(plan.tile))
        if (tiles_cycles(plan.tile, size, g.ow) <
            tiles_cycles(plan.tile, plan.tile_pixels, g.ow) * 0.999)
            plan.tile_pixels = size;
    plan.slabs = ceil_div(plan.out_blocks, plan.tile.vectors);
    plan.rows = g.n * g.oh;
    plan.row_items =
        std::max<std::int64_t>(1, plan.rows / (16 * std::max(1, device.compute_units)));
    plan.items = ceil_div(plan.rows, plan.row_items);
    plan.row_items = ceil_div(plan.rows, plan.items);  // equal work for all items
    // The last tile reads whole tiles.
    const std::int64_t columns = ceil_div(g.ow, plan.tile_pixels) * plan.tile_pixels;
    plan.row_length = (columns - 1) * g.sw + (g.kw - 1) * g.dw + 1;
    return plan;
}

class BlockedFirst : public ConvolutionEngine {
  public:
    BlockedFirst() : ConvolutionEngine(forward_type, "blocked_first") {}

    std::vector<std::string> sources() const override {
        return {"conv2d/blocked_first.cl", "conv2d/blocked_pack.cl"};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = blocked_verdict(device, problem); !verdict) return verdict;
        const Geometry g = lying_geometry(problem);
        if (g.groups != 1) return Verdict::no("it does not support grouped convolutions");
        if (g.in >= device.vector_width)
            return Verdict::no(cat("it needs fewer input channels than the ", device.vector_width,
                                   " lanes of a vector, not ", g.in));
        return Verdict::yes();
    }

    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        const Geometry g = lying_geometry(problem);
        const Plan plan = plan_of(device, g);
        LayoutChoice choice = LayoutChoice::all(problem, Layout::blocked(device.vector_width));
        choice.inputs[0] = Layout::plain();
        const std::int64_t lanes = plan.tile.vectors * device.vector_width;
        const std::int64_t bytes = 4 * plan.slabs * lanes * g.in * g.kh * g.kw;
        choice.inputs[1] =
            Layout::packed(cat("conv2d.blocked_first:", lanes), static_cast<std::uint64_t>(bytes));
        if (has_bias(problem)) choice.inputs[2] = Layout::plain();
        return {choice};
    }

    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning&) const override {
        const Geometry g = lying_geometry(problem);
        const Plan plan = plan_of(device, g);
        return static_cast<std::uint64_t>(4 * plan.items * g.in * g.kh * plan.row_length);
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, lying_geometry(problem).flops(), 0.6);
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Traits& device = context.traits();
        const Geometry g = lying_geometry(problem);
        const Plan plan = plan_of(device, g);
        const bool bias = has_bias(problem);
        const std::string options = define("V", device.vector_width) +
                                    define("P", plan.tile.pixels) + define("O", plan.tile.vectors);
        const auto program = conv_program(context, "blocked_first.cl", options, problem.epilogue);
        KernelCall call(program, "conv_first", single_items(plan.items));
        const int y = static_cast<int>(problem.inputs.size());
        call.tensor("x", 0)
            .tensor("w", 1)
            .tensor("bias", bias ? 2 : 0)
            .tensor("y", y)
            .tensor("scratch", y + 1);
        bind_epilogue(call, problem.epilogue);
        call.sizes({{"rows", plan.rows},
                    {"row_items", plan.row_items},
                    {"channels", g.in},
                    {"x_h", g.h},
                    {"x_w", g.w},
                    {"out", g.out},
                    {"out_blocks", plan.out_blocks},
                    {"out_h", g.oh},
                    {"out_w", g.ow},
                    {"kernel_h", g.kh},
                    {"kernel_w", g.kw},
                    {"stride_h", g.sh},
                    {"stride_w", g.sw},
                    {"tile_pixels", plan.tile_pixels},
                    {"pad_h", g.pt},
                    {"pad_w", g.pl},
                    {"dilate_h", g.dh},
                    {"dilate_w", g.dw},
                    {"row_length", plan.row_length},
                    {"has_bias", bias}});
        return std::make_unique<KernelLaunch>(std::move(call));
    }

    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning&, int) const override {
        const Geometry g = lying_geometry(problem);
        auto launch = std::make_unique<KernelLaunch>();
        add_packing(*launch, context, forward_job(g), 0, 1,
                    plan_of(context.traits(), g).tile.vectors, 0);
        return launch;
    }
};

}  // namespace

void add_blocked_first_engine(EngineRegistry& registry) {
    registry.add(std::make_unique<BlockedFirst>());
}

}  // namespace dlprim::conv2d
