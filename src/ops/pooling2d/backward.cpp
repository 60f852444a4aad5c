// SPDX-License-Identifier: MIT
// pooling2d.backward: the gradient of Pooling2D on OpenCL, computed per input element; see
// kernels/pooling2d/backward.cl, and backward_strip.cl for GPUs.
#include "ops/pooling2d/engines.hpp"
#include "ops/pooling2d/kernel.hpp"
#include "ops/pooling2d/strip.hpp"

namespace dlprim::pooling2d {

namespace {

class Backward : public Engine {
  public:
    std::string_view name() const override { return "pooling2d.backward"; }
    std::string_view op() const override { return "Pooling2DBackward"; }
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
        const bool indices = problem.inputs.size() == 2;
        const int dx = indices ? 2 : 1;
        pooling2d::KernelShape shape(context.traits(), problem, problem.outputs[0],
                                     problem.inputs[0]);
        auto launch = std::make_unique<KernelLaunch>();
        if (shape.outer == 0) return launch;
        const pooling2d::Strip strip(context.traits(), problem, true);
        KernelCall call = strip ? strip.call(context, "", tuning.at("group"))
                                : shape.call(context, "pooling2d/backward.cl", "pool_backward",
                                             shape.input.shape, "", tuning);
        call.tensor("dy", 0, size_of(problem.inputs[0].dtype))
            .tensor("dx", dx, size_of(problem.outputs[0].dtype));
        call.tensor("idx", indices ? 1 : 0, size_of(problem.inputs[indices ? 1 : 0].dtype));
        call.check();
        launch->add(std::move(call));
        return launch;
    }
    std::vector<std::string> sources() const override {
        return {"pooling2d/backward.cl", "pooling2d/backward_strip.cl"};
    }
};

}  // namespace

void add_backward_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Backward>());
}

}  // namespace dlprim::pooling2d
