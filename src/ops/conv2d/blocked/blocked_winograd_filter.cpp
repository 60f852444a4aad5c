// SPDX-License-Identifier: MIT
// conv2d_backward_filter.blocked_winograd: gradients of the weights of 3x3 convolutions of stride 1
// on CPUs with blocked activations, by the transpose of Winograd's F(4x4, 3x3) (Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks", 2016;
// kernels/conv2d/blocked_winograd_filter.cl).
#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "ops/conv2d/blocked/blocked.hpp"
#include "ops/conv2d/engines.hpp"

#include <algorithm>
#include <limits>

namespace dlprim::conv2d {

namespace {

constexpr std::int64_t tile_pixels = 4, points = 36;

// How a problem is divided; see the kernel.
struct Plan {
    Geometry g;
    int out_vectors, in_lanes;
    std::int64_t out_blocks, in_blocks, tile_out, tile_in, out_tiles, in_tiles;
    std::int64_t tile_rows, tile_columns, tiles;
    std::int64_t splits, tasks, items, group_tiles;
    std::int64_t u_row, v_row, m_row;  // floats
    double seconds;

    // Floats of the workspace per work-item.
    std::int64_t item_floats(int v) const { return points * (u_row + v_row + m_row + v); }
};

// Floats of the workspace for all work-items: 64 MiB, or with many cores 2 MiB per core.
std::int64_t room(const Traits& device) {
    return std::max<std::int64_t>(16 << 20, std::int64_t{device.compute_units} << 19);
}

// Computes the remaining numbers of a plan whose parts and splits are set, and its seconds.
void settle(const Traits& device, Plan& p) {
    const int v = device.vector_width;
    const std::int64_t cores = std::max(1, device.compute_units);
    p.out_tiles = ceil_div(p.out_blocks, p.tile_out);
    p.in_tiles = ceil_div(p.in_blocks, p.tile_in);
    p.tile_out = ceil_div(p.out_blocks, p.out_tiles);
    p.tile_in = ceil_div(p.in_blocks, p.in_tiles);
    p.tasks = p.out_tiles * p.in_tiles * p.splits;
    p.items = p.splits > 1 ? p.tasks : std::min(p.tasks, cores);
    p.m_row = odd(p.tile_out * p.tile_in * v) * v;
    // Groups of equal size. A group has so few tiles that a panel of each operand stays in the L1
    // cache and that the workspace suffices for all items.
    const std::int64_t here = ceil_div(p.tiles, p.splits);
    std::int64_t most = v >= 16 ? 192 : 160;
    for (;; most /= 2) {
        p.group_tiles = ceil_div(here, ceil_div(here, most));
        p.u_row = odd(p.tile_out * p.group_tiles) * v;
        p.v_row = odd(p.tile_in * p.group_tiles) * v;
        if (most < 32 || p.items * p.item_floats(v) <= room(device)) break;
    }

    const double flops = std::max(1.0, device.gflops) * 1e9 / static_cast<double>(cores);
    const double bytes = std::max(1.0, device.gbytes_per_s) * 1e9 / static_cast<double>(cores);
    const auto blocks = static_cast<double>(p.tile_out + p.tile_in);
    const auto lanes = static_cast<double>(p.tile_out * p.tile_in * v * v);
    const auto tiles = static_cast<double>(here), runs = static_cast<double>(ceil_div(here, most));
    double task = tiles * points * 2 * lanes / (0.75 * flops);
    task += tiles * blocks * points * v * 20 / flops;             // transformations
    task += runs * points * lanes * 8 / (2.6 * bytes);            // m, through the last-level cache
    task += tiles * blocks * points * v * 8 / (2.6 * bytes);      // u and v
    task += points * lanes * static_cast<double>(8 + 4) / bytes;  // the weights
    p.seconds = task * static_cast<double>(ceil_div(p.tasks, cores));
}

// The fastest plan according to the model.
Plan plan_of(const Traits& device, const Problem& problem) {
    Plan p{};
    p.g = Geometry::of(problem);
    const int v = device.vector_width;
    p.out_blocks = ceil_div(p.g.out, v);
    p.in_blocks = ceil_div(p.g.in, v);
    p.out_vectors = p.out_blocks > 1 ? 2 : 1;
    p.in_lanes = p.out_vectors > 1 && v > 4 ? v / 2 : v;
    p.tile_rows = ceil_div(p.g.oh, tile_pixels);
    p.tile_columns = ceil_div(p.g.ow, tile_pixels);
    p.tiles = p.g.n * p.tile_rows * p.tile_columns;
    Plan best{};
    best.seconds = std::numeric_limits<double>::infinity();
    for (const std::int64_t channels : {64, 128, 256})
        for (const std::int64_t splits : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
            p.tile_out = std::min(p.out_blocks, ceil_div(channels, v));
            p.tile_in = std::min(p.in_blocks, ceil_div(channels, v));
            p.splits = splits;
            if (splits > std::max<std::int64_t>(1, p.tiles)) continue;
            settle(device, p);
            const bool smallest = channels == 64 && splits == 1;
            if (!smallest && p.items * p.item_floats(v) > room(device)) continue;
            if (p.seconds < best.seconds) best = p;
        }
    return best;
}

class BlockedWinogradFilter : public ConvolutionEngine {
  public:
    BlockedWinogradFilter() : ConvolutionEngine(backward_filter_type, "blocked_winograd") {}

    std::vector<std::string> sources() const override {
        return {"conv2d/blocked_winograd_filter.cl"};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = filter_verdict(device, problem); !verdict) return verdict;
        const Geometry g = Geometry::of(problem);
        if (Verdict verdict = winograd_verdict(device, g); !verdict) return verdict;
        if (g.n * g.oh * g.ow == 0)
            return Verdict::no("it does not support an empty batch or image");
        return Verdict::yes();
    }

    std::vector<LayoutChoice> layouts(const Traits& device, const Problem&) const override {
        const Layout blocked = Layout::blocked(device.vector_width);
        return {{{blocked, blocked}, {Layout::plain()}}};
    }

    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning&) const override {
        const Plan p = plan_of(device, problem);
        return static_cast<std::uint64_t>(4 * p.items * p.item_floats(device.vector_width));
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return std::max(plan_of(device, problem).seconds, roofline_seconds(device, problem, 0, 1)) +
               device.launch_us * 1e-6;
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Traits& device = context.traits();
        const Plan p = plan_of(device, problem);
        const auto program = conv_program(context, "blocked_winograd_filter.cl",
                                          define("V", device.vector_width) +
                                              define("O", p.out_vectors) + define("I", p.in_lanes));
        auto launch = std::make_unique<KernelLaunch>();
        KernelCall call(program, "winograd_filter", single_items(p.items));
        call.tensor("x", 0).tensor("dy", 1);
        bind(call, p);
        call.sizes({{"items", p.items},
                    {"tasks", p.tasks},
                    {"out_blocks", p.out_blocks},
                    {"group_tiles", p.group_tiles},
                    {"tiles", p.tiles},
                    {"tile_rows", p.tile_rows},
                    {"tile_columns", p.tile_columns},
                    {"x_h", p.g.h},
                    {"x_w", p.g.w},
                    {"y_h", p.g.oh},
                    {"y_w", p.g.ow},
                    {"pad_h", p.g.pt},
                    {"pad_w", p.g.pl}});
        launch->add(std::move(call));
        if (p.splits == 1) return launch;
        KernelCall sum(program, "winograd_filter_sum", single_items(p.out_blocks * p.in_blocks));
        bind(sum, p);
        launch->add(std::move(sum));
        return launch;
    }

  private:
    // Binds the arguments that both kernels have.
    static void bind(KernelCall& call, const Plan& p) {
        call.tensor("dw", 2).tensor("scratch", 3);
        call.sizes({{"splits", p.splits},
                    {"tile_out", p.tile_out},
                    {"tile_in", p.tile_in},
                    {"in_tiles", p.in_tiles},
                    {"in_blocks", p.in_blocks},
                    {"out", p.g.out},
                    {"in", p.g.in},
                    {"u_row", p.u_row},
                    {"v_row", p.v_row},
                    {"m_row", p.m_row}});
    }
};

}  // namespace

void add_blocked_winograd_filter_engine(EngineRegistry& registry) {
    registry.add(std::make_unique<BlockedWinogradFilter>());
}

}  // namespace dlprim::conv2d
