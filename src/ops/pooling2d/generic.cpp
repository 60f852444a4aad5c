// SPDX-License-Identifier: MIT
// pooling2d.generic: Pooling2D on OpenCL in plain, channels_last and blocked layouts; see
// kernels/pooling2d/generic.cl, and strip.cl for GPUs.
#include "ops/pooling2d/engines.hpp"
#include "ops/pooling2d/kernel.hpp"
#include "ops/pooling2d/strip.hpp"

namespace dlprim::pooling2d {

namespace {

class Generic : public Engine {
  public:
    std::string_view name() const override { return "pooling2d.generic"; }
    std::string_view op() const override { return "Pooling2D"; }
    bool on_host() const override { return false; }
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return pooling2d::is_applicable(problem, true);
    }
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        return pooling2d::layouts(device, problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return pooling2d::seconds(device, problem);
    }
    Tuning default_tuning(const Traits& device, const Problem&) const override {
        return pooling2d::default_tuning(device);
    }
    TuneSpace tune_space(const Traits& device, const Problem&) const override {
        return pooling2d::tune_space(device);
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const bool indices = problem.outputs.size() == 2;
        const char* const index = indices ? " -DINDEX=1" : " -DINDEX=0";
        pooling2d::KernelShape shape(context.traits(), problem, problem.inputs[0],
                                     problem.outputs[0]);
        auto launch = std::make_unique<KernelLaunch>();
        if (shape.outer == 0) return launch;
        const pooling2d::Strip strip(context.traits(), problem, false);
        KernelCall call = strip ? strip.call(context, index, tuning.at("group"))
                                : shape.call(context, "pooling2d/generic.cl", "pool",
                                             shape.output.shape, index, tuning);
        call.tensor("x", 0, size_of(problem.inputs[0].dtype))
            .tensor("y", 1, size_of(problem.outputs[0].dtype));
        call.tensor("idx", indices ? 2 : 1, size_of(problem.outputs[indices ? 1 : 0].dtype));
        call.check();
        launch->add(std::move(call));
        return launch;
    }
    std::vector<std::string> sources() const override {
        return {"pooling2d/generic.cl", "pooling2d/strip.cl"};
    }
};

}  // namespace

void add_generic_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Generic>());
}

}  // namespace dlprim::pooling2d
