// SPDX-License-Identifier: MIT
// pad.gather: PadBackward on OpenCL. Each work-item computes one input element: the sum over the
// outputs that read it.
#include "ops/pad/gather_geometry.hpp"

#include "base/text.hpp"

namespace dlprim::pad {

namespace {

class PadGather : public GatherEngine {
  public:
    PadGather() : GatherEngine("pad.gather", false) {}
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const pad::GatherGeometry g(problem);
        const std::int64_t count = g.outer * g.x[0] * g.x[1] * g.x[2];
        if (count == 0) return std::make_unique<KernelLaunch>();
        ProgramSource source{"pad/gather.cl", kernel_source("pad/gather.cl"),
                             cat("-DMODE=", static_cast<int>(g.mode))};
        KernelCall call(context.build(source), "pad_gather", line_range(context.traits(), count));
        call.tensor("dy", 0).tensor("dx", 1);
        call.scalar("count", count);
        for (std::size_t d = 0; d < 3; ++d)
            call.scalar(cat("x", d), std::int64_t{g.x[d]})
                .scalar(cat("y", d), std::int64_t{g.y[d]})
                .scalar(cat("before", d), std::int64_t{g.before[d]});
        return std::make_unique<KernelLaunch>(std::move(call));
    }
    std::vector<std::string> sources() const override { return {"pad/gather.cl"}; }
};

}  // namespace

void add_gather_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<PadGather>());
}

}  // namespace dlprim::pad
