// SPDX-License-Identifier: MIT
// conv2d_backward_filter.blocked and conv2d_backward_filter.blocked_first: gradients of convolution
// weights on CPUs, with blocked dy, and blocked x or, for few channels, plain x
// (kernels/conv2d/blocked_filter.cl, blocked_first_filter.cl). The sum over the batch is divided
// into partial sums, which keeps it accurate and gives every core work. They are added in order at
// the end.
#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "ops/conv2d/blocked/blocked.hpp"
#include "ops/conv2d/engines.hpp"

#include <algorithm>

namespace dlprim::conv2d {

RowSplit split_rows(const Traits& device, const Geometry& g, std::int64_t tiles,
                    std::int64_t pixels, std::int64_t sum_bytes) {
    RowSplit split{};
    split.rows = std::clamp<std::int64_t>(pixels / std::max<std::int64_t>(g.ow, 1), 1,
                                          std::max<std::int64_t>(g.oh, 1));
    split.chunks = ceil_div(std::max<std::int64_t>(g.oh, 1), split.rows);
    // About four work-items per core, with partial sums of at most 64 MiB.
    const std::int64_t wanted =
        ceil_div(4 * std::max(1, device.compute_units), std::max<std::int64_t>(tiles, 1));
    const std::int64_t room = (64 << 20) / std::max<std::int64_t>(sum_bytes * tiles, 1);
    const std::int64_t most = std::min(room, g.n * split.chunks);
    split.splits = std::max<std::int64_t>(1, std::min(wanted, most));
    // Runtimes give each core a range of items, of equal work if each has whole splits.
    const std::int64_t units = std::max(1, device.compute_units);
    const std::int64_t even = ceil_div(split.splits, units) * units;
    if (tiles < 8 * units && even <= most) split.splits = even;
    return split;
}

namespace {

// What one block of output channels reads.
Reach filter_reach(const Traits& device, const Geometry& g) {
    const int v = device.vector_width;
    return reach_of(device, g.groups, g.group_in(), g.group_out(), 1, v, v);
}

Layout blocked_layout(const Traits& device) {
    return Layout::blocked(device.vector_width);
}

class BlockedFilter : public ConvolutionEngine {
  public:
    // patches: on a copy of the windows of a plain x (blocked_patches.cpp).
    explicit BlockedFilter(bool patches)
        : ConvolutionEngine(backward_filter_type, patches ? "blocked_patches" : "blocked"),
          patches_(patches) {}

    std::vector<std::string> sources() const override {
        return {"conv2d/blocked_filter.cl",
                patches_ ? "conv2d/blocked_patches.cl" : "conv2d/blocked_subsample.cl"};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = filter_verdict(device, problem); !verdict) return verdict;
        if (patches_) return patches_verdict(device, Geometry::of(problem));
        return groups_verdict(Geometry::of(problem));
    }

    std::vector<LayoutChoice> layouts(const Traits& device, const Problem&) const override {
        const Layout x = patches_ ? Layout::plain() : blocked_layout(device);
        return {{{x, blocked_layout(device)}, {Layout::plain()}}};
    }

    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning&) const override {
        const Plan p = plan_of(device, problem);
        return static_cast<std::uint64_t>(p.split.splits * p.sum_bytes + p.copy_bytes);
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        if (patches_) return patches_seconds(device, problem);
        const Geometry g = Geometry::of(problem);
        if (group_lanes(device, g.groups, g.group_in(), g.group_out()) < device.vector_width)
            return roofline_seconds(device, problem, g.flops(), 0.5);
        const auto lanes =
            static_cast<double>(filter_reach(device, g).all_lanes * device.vector_width);
        return roofline_seconds(
            device, problem,
            g.flops() * lanes / static_cast<double>(g.groups * g.group_in() * g.group_out()), 0.6);
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Traits& device = context.traits();
        const Plan p = plan_of(device, problem);
        const Geometry& g = p.g;
        const auto program = conv_program(
            context, "blocked_filter.cl",
            define("B", device.vector_width) + define("V", p.lanes) + define("O", p.tile_vectors) +
                define("I", p.tile_lanes) + define("ACROSS", p.across));
        auto launch = std::make_unique<KernelLaunch>();
        const auto copy = static_cast<std::uint64_t>(p.split.splits * p.sum_bytes);
        if (patches_)
            add_patches(*launch, context, Geometry::of(problem), 3, copy);
        else if (p.copy_bytes > 0)
            add_subsampling(*launch, context, Geometry::of(problem), 3, copy);
        KernelCall call(program, "filter", single_items(p.split.splits * p.tiles));
        if (p.copy_bytes > 0)
            call.tensor_at("x", 3, copy);
        else
            call.tensor("x", 0);
        call.tensor("dy", 1).tensor("sums", 3);
        call.sizes({{"splits", p.split.splits},
                    {"groups", p.groups},
                    {"tile_out", p.tile_out},
                    {"tile_in", p.tile_in},
                    {"out_tiles", p.out_tiles},
                    {"in_tiles", p.in_tiles},
                    {"out_vectors", p.out_vectors},
                    {"in_vectors", p.in_vectors},
                    {"x_blocks", ceil_div(g.in, device.vector_width)},
                    {"dy_blocks", ceil_div(g.out, device.vector_width)},
                    {"out", g.out},
                    {"width_in", g.group_in()},
                    {"width_out", g.group_out()},
                    {"batch", g.n},
                    {"chunks", p.split.chunks},
                    {"chunk_rows", p.split.rows},
                    {"kernel_w", g.kw},
                    {"images_are_rows", p.images_are_rows}});
        bind_geometry(call, g);
        launch->add(std::move(call));
        add_sum(*launch, program, p);
        return launch;
    }

  private:
    struct Plan {
        Geometry g;
        bool images_are_rows;  // small images of a 1x1 convolution are the rows of a single one
        bool across;
        int lanes, tile_vectors, tile_lanes;           // of vectors; of the tile of registers
        std::int64_t groups, out_vectors, in_vectors;  // of a group, or of what a block reads
        std::int64_t tile_out, tile_in, out_tiles, in_tiles, tiles;
        std::int64_t sum_bytes, copy_bytes;  // of a split; of the copy of x that is read instead
        RowSplit split;
    };

    // The call that adds the partial sums and writes plain weights.
    static void add_sum(KernelLaunch& launch, const std::shared_ptr<Program>& program,
                        const Plan& p) {
        const Geometry& g = p.g;
        const bool across = p.across;
        KernelCall sum(program, across ? "filter_sum_across" : "filter_sum",
                       single_items((across ? 1 : g.groups * p.in_vectors) * p.out_vectors));
        sum.tensor("sums", 3).tensor("dw", 2);
        std::vector<std::pair<const char*, std::int64_t>> scalars{{"splits", p.split.splits},
                                                                  {"out_vectors", p.out_vectors},
                                                                  {"in_vectors", p.in_vectors},
                                                                  {"taps", g.kh * g.kw}};
        if (across)
            scalars.insert(
                scalars.end(),
                {{"out", g.out}, {"width_out", g.group_out()}, {"width_in", g.group_in()}});
        else
            scalars.insert(
                scalars.end(),
                {{"groups", g.groups}, {"group_out", g.group_out()}, {"group_in", g.group_in()}});
        for (const auto& [parameter, value] : scalars)
            sum.scalar(parameter, static_cast<std::int32_t>(value));
        launch.add(std::move(sum));
    }

    Plan plan_of(const Traits& device, const Problem& problem) const {
        Plan p{};
        p.g = Geometry::of(problem);
        if (patches_) {
            p.copy_bytes = patches_bytes(device, p.g);
            p.g = patches_geometry(p.g);
        } else if (reads_subsample(p.g)) {
            p.copy_bytes = subsample_bytes(device, p.g);
            p.g = without_stride(p.g);
        }
        if (p.g.pointwise() && p.g.h * p.g.w <= 256) {
            p.images_are_rows = true;
            p.g.w = p.g.ow = p.g.h * p.g.w;
            p.g.h = p.g.oh = p.g.n;
            p.g.n = 1;
        }
        const Geometry& g = p.g;
        p.lanes = group_lanes(device, g.groups, g.group_in(), g.group_out());
        const Reach reach = filter_reach(device, g);
        const bool halves = p.lanes < device.vector_width;
        p.across = reach.across && !halves;
        p.groups = p.across ? 1 : g.groups;
        p.out_vectors = halves ? g.group_out() / p.lanes : reach.out_vectors;
        p.in_vectors = halves ? g.group_in() / p.lanes : reach.most_lanes / p.lanes;
        choose_registers(p, device);
        const std::int64_t taps = g.kh * g.kw;
        if (p.across) {
            p.tile_out = 1;
            p.tile_in = p.in_vectors;
        } else {
            const std::int64_t most = ceil_div(taps == 1 ? 8 : 4, p.tile_vectors);
            p.tile_out = std::min(p.out_vectors, most * p.tile_vectors);
            p.tile_in = std::min<std::int64_t>(p.in_vectors, taps == 1 ? 8 : 1);
        }
        p.out_tiles = ceil_div(p.out_vectors, p.tile_out);
        p.in_tiles = ceil_div(p.in_vectors, p.tile_in);
        p.tiles = p.groups * p.out_tiles * p.in_tiles;
        p.sum_bytes = 4 * p.groups * p.out_vectors * p.in_vectors * taps * p.lanes * p.lanes;
        p.split = split_rows(device, g, p.tiles, p.images_are_rows ? 256 : 128,
                             ceil_div(p.sum_bytes, p.tiles));
        return p;
    }

    // The tile that leaves the fewest places in registers without a vector of output channels; of
    // several the largest, which loads the least per product.
    static void choose_registers(Plan& p, const Traits& device) {
        p.tile_vectors = p.out_vectors > 1 && !p.across ? 2 : 1;
        if (device.vector_registers >= 32 && p.tile_vectors == 2) {
            const int most = p.lanes < device.vector_width ? 6 : 3;
            for (int o = 3; o <= most; ++o)
                if (ceil_div(p.out_vectors, o) * o <=
                    ceil_div(p.out_vectors, p.tile_vectors) * p.tile_vectors)
                    p.tile_vectors = o;
        }
        p.tile_lanes = p.lanes;
        while (p.tile_lanes > 2 && p.tile_vectors * p.tile_lanes > 24) p.tile_lanes /= 2;
        if (device.vector_registers < 32 && p.tile_vectors == 2 && p.tile_lanes > 4)
            p.tile_lanes = std::max(4, p.lanes / 2);
    }

    bool patches_;
};

class FirstFilter : public ConvolutionEngine {
  public:
    FirstFilter() : ConvolutionEngine(backward_filter_type, "blocked_first") {}

    std::vector<std::string> sources() const override { return {"conv2d/blocked_first_filter.cl"}; }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = filter_verdict(device, problem); !verdict) return verdict;
        const Geometry g = Geometry::of(problem);
        if (g.groups != 1) return Verdict::no("it does not support grouped convolutions");
        if (g.in >= device.vector_width)
            return Verdict::no(cat("it needs fewer input channels than the ", device.vector_width,
                                   " lanes of a vector, not ", g.in));
        return Verdict::yes();
    }

    std::vector<LayoutChoice> layouts(const Traits& device, const Problem&) const override {
        return {{{Layout::plain(), blocked_layout(device)}, {Layout::plain()}}};
    }

    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning&) const override {
        const Plan p = plan_of(device, problem);
        return static_cast<std::uint64_t>(p.split.splits * (p.sum_bytes + p.scratch_bytes));
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, Geometry::of(problem).flops(), 0.5);
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Traits& device = context.traits();
        const Plan p = plan_of(device, problem);
        const Geometry& g = p.g;
        const auto program =
            conv_program(context, "blocked_first_filter.cl",
                         define("V", device.vector_width) + define("O", p.out_vectors) +
                             define("T", p.taps_at_once));
        KernelCall call(program, "first_filter", single_items(p.split.splits));
        call.tensor("x", 0).tensor("dy", 1).tensor("sums", 3);
        call.tensor_at("scratch", 3, static_cast<std::uint64_t>(p.split.splits * p.sum_bytes));
        call.sizes({{"splits", p.split.splits},
                    {"rows", g.n * g.oh},
                    {"channels", g.in},
                    {"out_blocks", p.out_blocks},
                    {"kernel_w", g.kw},
                    {"row_length", p.row_length}});
        bind_geometry(call, g);
        KernelCall sum(program, "first_filter_sum", single_items(p.out_blocks));
        sum.tensor("sums", 3).tensor("dw", 2);
        sum.sizes({{"splits", p.split.splits}, {"out", g.out}, {"taps", g.in * g.kh * g.kw}});
        auto launch = std::make_unique<KernelLaunch>();
        launch->add(std::move(call)).add(std::move(sum));
        return launch;
    }

  private:
    struct Plan {
        Geometry g;
        int out_vectors, taps_at_once;
        std::int64_t out_blocks, row_length, sum_bytes, scratch_bytes;  // bytes are per split
        RowSplit split;
    };

    static Plan plan_of(const Traits& device, const Problem& problem) {
        Plan p{};
        p.g = Geometry::of(problem);
        const Geometry& g = p.g;
        p.out_blocks = ceil_div(g.out, device.vector_width);
        const int most = device.vector_registers >= 32 ? 4 : 2;
        p.out_vectors = 1;
        while (p.out_vectors < most && p.out_blocks % (2 * p.out_vectors) == 0) p.out_vectors *= 2;
        const std::int64_t taps = g.in * g.kh * g.kw;
        const std::int64_t registers = device.vector_registers >= 32 ? 28 : 12;
        p.taps_at_once = static_cast<int>(std::clamp<std::int64_t>(
            registers / p.out_vectors, 1, std::min<std::int64_t>(taps, 7)));
        p.row_length = (g.ow - 1) * g.sw + (g.kw - 1) * g.dw + 1;
        p.sum_bytes = 4 * p.out_blocks * device.vector_width * taps;
        p.scratch_bytes = 4 * g.in * g.kh * p.row_length;
        p.split = split_rows(device, g, 1, 1, p.sum_bytes);
        return p;
    }
};

}  // namespace

void add_blocked_filter_engines(EngineRegistry& registry) {
    registry.add(std::make_unique<FirstFilter>());
    registry.add(std::make_unique<BlockedFilter>(true));
    registry.add(std::make_unique<BlockedFilter>(false));
}

}  // namespace dlprim::conv2d
