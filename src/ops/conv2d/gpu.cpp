// SPDX-License-Identifier: MIT
// What the engines of convolution on GPUs share: verdicts, compiler options, the sum of parts, and
// zeros for phases of a data gradient that no tap reaches.
#include "ops/conv2d/gpu.hpp"

#include "base/text.hpp"
#include "engine/epilogue.hpp"

#include <algorithm>

namespace dlprim::conv2d {

Verdict implicit_gemm_verdict(const Traits& device, const Problem& problem) {
    if (Verdict verdict = gemm_tile_verdict(device); !verdict) return verdict;
    return narrow_index_verdict(problem);
}

Geometry flattened(const Problem& problem) {
    Geometry g = Geometry::of(problem);
    if (g.pointwise()) {
        g.w = g.ow = g.h * g.w;
        g.h = g.oh = 1;
    }
    return g;
}

double output_bytes(const Problem& problem) {
    return 4.0 * static_cast<double>(problem.outputs[0].shape.numel());
}

LayoutChoice channels_last_choice(const Problem& problem) {
    LayoutChoice choice = LayoutChoice::all(problem);
    choice.inputs[0] = choice.outputs[0] = Layout::channels_last();
    for (const EpilogueStage& stage : problem.epilogue)
        if (stage.kind == EpilogueStage::Kind::add)
            choice.inputs[static_cast<std::size_t>(stage.operand)] = Layout::channels_last();
    return choice;
}

std::uint64_t split_bytes(const Problem& problem, std::int64_t splits) {
    if (splits <= 1) return 0;
    return static_cast<std::uint64_t>(problem.outputs[0].shape.numel() * splits) * 4;
}

std::string image_options(const Problem& problem, bool split) {
    const bool filter = problem.op == backward_filter_type;
    return storage_options({{'A', problem.inputs[0].dtype},
                            {'B', filter ? problem.inputs[1].dtype : DType::f32},
                            {'C', split ? DType::f32 : problem.outputs[0].dtype}});
}

namespace {

Verdict sizes_verdict(const Problem& problem) {
    const Geometry g = Geometry::of(problem);
    const double limit = 2147000000.0, small = 1 << 29;
    const auto product = [](std::initializer_list<std::int64_t> sizes) {
        double all = 1;
        for (const std::int64_t size : sizes) all *= static_cast<double>(size);
        return all;
    };
    if (product({g.in, g.h, g.w}) > limit || product({g.out, g.oh, g.ow}) > limit ||
        product({g.n, g.oh, g.ow}) > limit || product({g.n, g.h, g.w}) > limit ||
        product({g.in, g.kh, g.kw}) > limit || product({g.out, g.kh, g.kw}) > limit)
        return Verdict::no(
            "an image has too many elements, or the batch too many pixels, for its 32-bit indices");
    if (product({g.kh, g.dh}) > small || product({g.kw, g.dw}) > small ||
        product({g.oh, g.sh}) > small || product({g.ow, g.sw}) > small)
        return Verdict::no(
            "the filter's dilation or stride reaches too far for its 32-bit indices");
    return Verdict::yes();
}

}  // namespace

Verdict index_verdict(const Problem& problem) {
    if (Verdict verdict = storage_verdict(problem, {}, false); !verdict) return verdict;
    return sizes_verdict(problem);
}

Verdict image_verdict(const Problem& problem) {
    if (problem.op == backward_filter_type) return storage_verdict(problem, {0, 1}, false);
    return storage_verdict(problem, {0}, true);
}

Verdict narrow_index_verdict(const Problem& problem) {
    if (Verdict verdict = image_verdict(problem); !verdict) return verdict;
    return sizes_verdict(problem);
}

void add_split_sum(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                   std::int64_t splits, std::uint64_t parts_at, std::int64_t first_pixel) {
    const bool bias = problem.op == forward_type && has_bias(problem);
    add_parts_sum(launch, context, problem, {splits, bias ? 2 : -1, parts_at, first_pixel});
}

void bind_filter(KernelCall& call, const Geometry& g, std::int64_t steps, std::int64_t part,
                 std::int64_t tiles_m, std::int64_t tiles_n) {
    call.sizes({{"pixels", g.n * g.oh * g.ow}, {"channels_in", g.in}, {"channels_out", g.out}});
    call.sizes({{"pt", g.pt}, {"pl", g.pl}, {"dh", g.dh}, {"dw", g.dw}});
    call.sizes(
        {{"steps", steps}, {"steps_part", part}, {"tiles_m", tiles_m}, {"tiles_n", tiles_n}});
}

bool has_empty_phase(const std::vector<DenseJob>& jobs) {
    return std::any_of(jobs.begin(), jobs.end(), is_empty);
}

void add_phase_fill(KernelLaunch& launch, ContextImpl& context, const Problem& problem) {
    const std::int64_t count = problem.outputs[0].shape.numel();
    const auto program =
        context.build({phase_fill_source, with_epilogue(kernel_source(phase_fill_source), problem),
                       storage_options({{'C', problem.outputs[0].dtype}})});
    KernelCall call(program, "phase_fill", rounded_range(context.traits(), count));
    call.tensor("y", static_cast<int>(problem.inputs.size()), size_of(problem.outputs[0].dtype))
        .scalar("count", count);
    bind_epilogue(call, problem);
    launch.add(std::move(call));
}

NDRange rounded_range(const Traits& device, std::int64_t items, std::size_t group) {
    while (group > device.max_work_group) group /= 2;
    NDRange range;
    range.global[0] = (static_cast<std::size_t>(items) + group - 1) / group * group;
    range.local[0] = group;
    range.local[1] = range.local[2] = 1;
    return range;
}

}  // namespace dlprim::conv2d
