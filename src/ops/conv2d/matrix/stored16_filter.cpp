// SPDX-License-Identifier: MIT
// conv2d_backward_filter.wgmma_half (mma_half): the filter gradient on tensor cores
// (kernels/conv2d/stored16_filter.cl). Images and gradients are half or bfloat16 with their
// channels last, and the result is float. Long sums are divided between work-groups, which write
// parts to the workspace. The parts are added in order.
#include "ops/conv2d/matrix/stored16_filter.hpp"
#include "base/text.hpp"
#include "engine/epilogue.hpp"
#include "engine/matrix/model.hpp"
#include "engine/matrix/named_tile.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/matrix/stored16.hpp"

#include <algorithm>

namespace dlprim::conv2d {

std::vector<Stored16Tile> stored16_filter_tiles(MatrixUnit unit, const Traits& device) {
    return stored16_tiles(h200::stored16_transposed_rates, unit, device, {});
}

Stored16Size stored16_filter_size(const Geometry& g) {
    return {g.out, ceil_div(g.in, stored16_block) * stored16_block * g.kh * g.kw,
            ceil_div(g.n * g.oh * g.ow, stored16_depth)};
}

FilterParts::FilterParts(const Geometry& g, const Tuning& tuning) {
    const std::int64_t all = stored16_filter_size(g).steps;
    steps =
        std::max<std::int64_t>(1, ceil_div(all, std::max<std::int64_t>(tuning.at("splits"), 1)));
    count = std::max<std::int64_t>(1, ceil_div(all, steps));
}

void add_stored16_filter(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                         const Tuning& tuning, const Stored16FilterCall& how) {
    const Geometry g = flattened(problem);
    const Stored16Size size = stored16_filter_size(g);
    const Stored16Tile tile = named_tile(stored16_filter_tiles(how.unit, context.traits()), tuning);
    const FilterParts parts(g, tuning);
    const std::string options =
        define("KIND", how.kind) + define("STAGES", stored16_stages(tile, tuning)) +
        define("NEAR", tuning.at("near")) + define("WM", tile.rows / stored16_block) +
        define("BN", tile.columns) + define("PARTS", !how.direct) + define("KERNEL_H", g.kh) +
        define("KERNEL_W", g.kw) + define("H", g.h) + define("W", g.w) + define("OH", g.oh) +
        define("OW", g.ow) + define("STRIDE_H", g.sh) + define("STRIDE_W", g.sw) +
        unit_option(how.unit);
    const std::int64_t tiles_m = ceil_div(size.rows, tile.rows),
                       tiles_n = ceil_div(size.columns, tile.columns);
    const auto program = context.build({stored16_filter_source,
                                        with_epilogue(kernel_source(stored16_filter_source),
                                                      how.direct ? problem.epilogue : Epilogue{}),
                                        options});
    KernelCall call(program, "stored16_filter",
                    group_range(tiles_m * tiles_n * parts.count, stored16_items));
    how.bind(call);
    bind_filter(call, g, size.steps, parts.steps, tiles_m, tiles_n);
    call.scalar("part_stride", how.direct ? std::int64_t(0) : problem.outputs[0].shape.numel());
    if (how.direct) bind_epilogue(call, problem.epilogue);
    launch.add(std::move(call));
}

namespace {

/// Whether the sums are the result, without a second kernel.
bool is_direct(const Geometry& g, const FilterParts& parts) {
    return parts.count == 1 && g.kh * g.kw == 1;
}

class Stored16FilterEngine : public ConvolutionEngine {
  public:
    explicit Stored16FilterEngine(MatrixUnit unit)
        : ConvolutionEngine(backward_filter_type, cat(name_of(unit), "_half")), unit_(unit) {}

    std::vector<std::string> sources() const override {
        return {stored16_filter_source, stored16_filter_sum_source};
    }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        const DType dtype = problem.inputs[0].dtype;
        if (stored16_kind(dtype) == 0 || problem.inputs[1].dtype != dtype)
            return Verdict::no("it needs both inputs in half or both in bfloat16");
        for (const int i : {0, 1})
            if (problem.inputs[static_cast<std::size_t>(i)].shape[1] % 8 != 0)
                return Verdict::no(cat("it needs numbers of channels that are multiples of 8, not ",
                                       problem.inputs[static_cast<std::size_t>(i)].shape[1]));
        if (Verdict verdict = stored16_storage_verdict(problem, {0, 1}, false); !verdict)
            return verdict;
        if (Verdict verdict = stored16_size_verdict(unit_, device, problem, dtype); !verdict)
            return verdict;
        return stored16_tiles_verdict(stored16_filter_tiles(unit_, device));
    }
    bool computes_in(Precision precision) const override { return precision != Precision::fp32; }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        LayoutChoice choice = LayoutChoice::all(problem);
        choice.inputs[0] = choice.inputs[1] = Layout::channels_last();
        return {choice};
    }

    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Geometry g = Geometry::of(problem);
        const FilterParts parts(g, tuning);
        return is_direct(g, parts) ? 0
                                   : static_cast<std::uint64_t>(problem.outputs[0].shape.numel()) *
                                         4 * static_cast<std::uint64_t>(parts.count);
    }

    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        const Geometry g = Geometry::of(problem);
        const FilterParts parts(g, tuning);
        const Stored16Tile tile = named_tile(stored16_filter_tiles(unit_, device), tuning);
        const double seconds =
            stored16_seconds(device, tile, stored16_filter_size(g), parts.count) +
            (is_direct(g, parts) ? 0
                                 : parts_seconds(device, output_bytes(problem),
                                                 std::max<std::int64_t>(parts.count, 2))) +
            device.launch_us * 1e-6;
        return std::max(seconds, roofline_seconds(device, problem, 0, 1.0, 0.6));
    }

    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        const Geometry g = Geometry::of(problem);
        return choose_stored16(device, stored16_filter_tiles(unit_, device),
                               stored16_filter_size(g), output_bytes(problem), 256e6,
                               g.kh * g.kw > 1);
    }

    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        const Geometry g = Geometry::of(problem);
        return stored16_tune_space(stored16_filter_tiles(unit_, device), stored16_filter_size(g),
                                   default_tuning(device, problem), g.kh * g.kw > 1);
    }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Geometry g = Geometry::of(problem);
        const FilterParts parts(g, tuning);
        const bool direct = is_direct(g, parts);
        const int result = static_cast<int>(problem.inputs.size());
        auto launch = std::make_unique<KernelLaunch>();
        add_stored16_filter(
            *launch, context, problem, tuning,
            {unit_, stored16_kind(problem.inputs[0].dtype), direct, [&](KernelCall& call) {
                 call.tensor("x", 0, 2).tensor("dy", 1, 2);
                 call.tensor("dweight", direct ? result : result + 1);
             }});
        if (!direct)
            add_stored16_filter_sum(*launch, context, problem, parts.count, g.kh * g.kw, g.in);
        return launch;
    }

  private:
    MatrixUnit unit_;
};

}  // namespace

void add_stored16_filter_sum(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                             std::int64_t count, std::int64_t taps, std::int64_t channels) {
    const Shape& shape = problem.outputs[0].shape;
    const auto program = context.build(
        {stored16_filter_sum_source,
         with_epilogue(kernel_source(stored16_filter_sum_source), problem.epilogue), ""});
    KernelCall call(program, "stored16_filter_sum",
                    group_range(ceil_div(shape.numel(), 32), stored16_items));
    const int result = static_cast<int>(problem.inputs.size());
    call.tensor("parts", result + 1).tensor("dweight", result);
    call.sizes(
        {{"count", shape.numel()}, {"splits", count}, {"taps", taps}, {"channels", channels}});
    bind_epilogue(call, problem.epilogue);
    launch.add(std::move(call));
}

void add_stored16_filter_engine(EngineRegistry& registry) {
    for (const MatrixUnit unit : matrix_units)
        registry.add(std::make_unique<Stored16FilterEngine>(unit));
}

}  // namespace dlprim::conv2d
