// SPDX-License-Identifier: MIT
// matmul.reference: the engine that always applies on OpenCL devices.
#include "engine/element_types.hpp"
#include "engine/storage.hpp"
#include "ops/matmul/engine.hpp"

#include <algorithm>

namespace dlprim::matmul {

namespace {

class Reference : public MatMulEngine {
  public:
    explicit Reference(const std::string& op) : MatMulEngine(op, "reference") {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        // Of all engines' reasons users see this one's.
        if (Verdict verdict = has_double(device, problem.inputs[0].dtype); !verdict) return verdict;
        return check_gemm(problem, true);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Gemm g = gemm_of(problem);
        const double seconds = std::max(
            roofline_seconds(device, problem, g.flops(), 0.02, 0.2),
            serial_loop_seconds(device, static_cast<double>(g.k)) + device.launch_us * 1e-6);
        // Products of few numbers, for which all engines take the time of a launch, must not need
        // another program than larger ones. So this engine leaves them to those made for CPUs.
        return check_wide_vectors(device) && check_gemm(problem) ? 16 * seconds : seconds;
    }
    std::vector<std::string> sources() const override { return {"matmul/reference.cl"}; }

    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Gemm g = gemm_of(problem);
        const std::string defines = epilogue_defines(problem, g);
        auto program =
            context.build({"matmul/reference.cl", defines + kernel_source("matmul/reference.cl"),
                           gemm_storage(problem, g)});
        const std::int64_t count = g.n * g.m * g.batches;
        KernelCall call(program, "matmul_reference", line_range(context.traits(), count));
        bind_factors(call, problem, g);
        bind_output(call, problem, g);
        bind_batch_digits(call, g);
        bind_strides(bind_sizes(call, g), g).scalar("count", count).scalar("alpha", g.alpha);
        return std::make_unique<KernelLaunch>(std::move(call));
    }
};

}  // namespace

void add_reference(EngineRegistry& engines, const std::string& op) {
    engines.add(std::make_unique<Reference>(op));
}

}  // namespace dlprim::matmul
