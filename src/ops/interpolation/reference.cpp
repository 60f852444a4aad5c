// SPDX-License-Identifier: MIT
// interpolation.reference: Interpolation on OpenCL, in plain, channels_last and blocked layouts;
// see kernels/interpolation/reference.cl.
#include "ops/interpolation/engines.hpp"
#include "ops/interpolation/kernel.hpp"

namespace dlprim::interpolation {

namespace {

class Reference : public Engine {
  public:
    std::string_view name() const override { return "interpolation.reference"; }
    std::string_view op() const override { return "Interpolation"; }
    bool on_host() const override { return false; }
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return interpolation::is_applicable(problem);
    }
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        return interpolation::layouts(device, problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return interpolation::seconds(device, problem);
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        return interpolation::build(context, problem.attrs, problem.inputs[0], problem.outputs[0],
                                    "interpolate", "x", "y", problem.outputs[0].shape);
    }
    std::vector<std::string> sources() const override { return {"interpolation/reference.cl"}; }
};

}  // namespace

void add_reference_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Reference>());
}

}  // namespace dlprim::interpolation
