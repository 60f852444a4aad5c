// SPDX-License-Identifier: MIT
// pad.gather: PadBackward on OpenCL. Each work-item computes one input element: the sum over the
// outputs that read it.
#include "ops/pad/gather_geometry.hpp"
#include "ops/pad/operator.hpp"

#include "base/text.hpp"

namespace dlprim::pad {

namespace {

class PadGather : public Engine {
  public:
    std::string_view name() const override { return "pad.gather"; }
    std::string_view op() const override { return "PadBackward"; }
    bool on_host() const override { return false; }
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        if (problem.inputs[0].dtype != DType::f32 || problem.outputs[0].dtype != DType::f32)
            return Verdict::no(cat("it supports float tensors only, not ",
                                   name_of(problem.inputs[0].dtype), " and ",
                                   name_of(problem.outputs[0].dtype)));
        if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
        return Verdict::yes();
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return copy_seconds(device, problem);
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const pad::GatherGeometry g(problem);
        auto launch = std::make_unique<KernelLaunch>();
        const std::int64_t count = g.outer * g.x[0] * g.x[1] * g.x[2];
        if (count == 0) return launch;
        ProgramSource source{"pad/gather.cl", kernel_source("pad/gather.cl"),
                             cat("-DMODE=", static_cast<int>(g.mode))};
        KernelCall call(context.build(source), "pad_gather", line_range(context.traits(), count));
        call.tensor("dy", 0).tensor("dx", 1);
        call.scalar("count", count);
        for (std::size_t d = 0; d < 3; ++d)
            call.scalar(cat("x", d), std::int64_t{g.x[d]})
                .scalar(cat("y", d), std::int64_t{g.y[d]})
                .scalar(cat("before", d), std::int64_t{g.before[d]});
        call.check();
        launch->add(std::move(call));
        return launch;
    }
    std::vector<std::string> sources() const override { return {"pad/gather.cl"}; }
};

}  // namespace

void add_gather_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<PadGather>());
}

}  // namespace dlprim::pad
