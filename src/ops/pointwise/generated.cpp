// SPDX-License-Identifier: MIT
// pointwise.generated: OpenCL kernels written for the program (engine/pointwise/).
//
// Tuning: "vector" 1 gives kernels of one work-item with wide vectors (CPUs), 0 work-groups (GPUs).
#include "engine/pointwise/stages.hpp"
#include "ops/pointwise/operator.hpp"

namespace dlprim::pointwise {
namespace {

Style style_of(const Tuning& tuning, const Traits& device) {
    const auto found = tuning.find("vector");
    const bool vector = found == tuning.end() ? device.wide_vectors : found->second != 0;
    return vector ? Style::vector : Style::group;
}

class GeneratedEngine final : public PointwiseEngine {
  public:
    std::string_view name() const override { return "pointwise.generated"; }
    bool on_host() const override { return false; }

    Tuning default_tuning(const Traits& device, const Problem&) const override {
        return {{"vector", device.wide_vectors ? 1 : 0}};
    }
    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning& tuning) const override {
        return stages_workspace(make_jobs(problem, device.fp64), device, style_of(tuning, device));
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Traits& device = context.traits();
        auto launch = std::make_unique<KernelLaunch>();
        add_stages(*launch, context, make_jobs(problem, device.fp64), style_of(tuning, device),
                   static_cast<int>(problem.inputs.size() + problem.outputs.size()));
        return launch;
    }
};

}  // namespace

void add_generated_engine() {
    EngineRegistry::instance().add(std::make_unique<GeneratedEngine>());
}

}  // namespace dlprim::pointwise
