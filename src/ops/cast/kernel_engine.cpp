// SPDX-License-Identifier: MIT
// KernelEngine: the launch, and when it needs double precision.
#include "ops/cast/kernel_engine.hpp"

#include "base/text.hpp"

namespace dlprim::cast {

namespace {

bool needs_fp64(const Problem& problem) {
    return !problem.attrs.boolean("reinterpret") &&
           (problem.inputs[0].dtype == DType::f64 || problem.outputs[0].dtype == DType::f64);
}

}  // namespace

Verdict KernelEngine::is_applicable(const Traits& device, const Problem& problem) const {
    if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
    if (Verdict verdict = accepts(problem); !verdict) return verdict;
    if (needs_fp64(problem) && !device.fp64)
        return Verdict::no("it needs double precision (cl_khr_fp64), which the device lacks");
    return Verdict::yes();
}

double KernelEngine::estimate(const Traits& device, const Problem& problem, const Tuning&) const {
    return roofline_seconds(device, problem, 0, 1, 0.5);
}

std::unique_ptr<Launch> KernelEngine::build(ContextImpl& context, const Problem& problem,
                                            const Tuning&) const {
    const std::int64_t count = problem.outputs[0].shape.numel();
    if (count == 0) return std::make_unique<KernelLaunch>();
    const std::string text =
        cat(head(problem), "#define NEEDS_FP64 ", needs_fp64(problem) ? 1 : 0, "\n");
    KernelCall call(context.build({source_, text + kernel_source(source_), ""}), kernel_,
                    line_range(context.traits(), count));
    call.tensor("x", 0, size_of(problem.inputs[0].dtype));
    call.tensor("y", 1, size_of(problem.outputs[0].dtype));
    call.scalar("count", count);
    return std::make_unique<KernelLaunch>(std::move(call));
}

}  // namespace dlprim::cast
