// SPDX-License-Identifier: MIT
// pointwise.generated: OpenCL kernels that are generated for the program (engine/pointwise/).
//
// Tuning: "vector" 1 selects kernels of single work-items with wide vectors (CPUs), and 0 selects
// work-groups (GPUs). "group" limits the size of work-groups; without it the generator chooses.
#include "engine/pointwise/stages.hpp"
#include "engine/work_group.hpp"
#include "ops/pointwise/engines.hpp"
#include "ops/pointwise/operator.hpp"

#include <algorithm>

namespace dlprim::pointwise {
namespace {

Style style_of(const Tuning& tuning, const Traits& device) {
    const auto found = tuning.find("vector");
    const bool vector = found == tuning.end() ? device.wide_vectors : found->second != 0;
    return vector ? Style::vector : Style::group;
}

// The device's traits with the tuning's limit on work-groups.
Traits cut_for(const Traits& device, const Tuning& tuning) {
    Traits traits = device;
    if (const auto group = tuning.find("group"); group != tuning.end())
        traits.max_work_group =
            std::min(device.max_work_group, static_cast<std::uint64_t>(group->second));
    return traits;
}

class GeneratedEngine final : public PointwiseEngine {
  public:
    GeneratedEngine() : PointwiseEngine("pointwise.generated", false) {}

    Tuning default_tuning(const Traits& device, const Problem&) const override {
        if (device.wide_vectors) return {{"vector", 1}};
        return {{"vector", 0}, {"group", usual_group(device)}};
    }
    TuneSpace tune_space(const Traits& device, const Problem&) const override {
        if (device.wide_vectors) return {};
        return {{"group", group_sizes(device)}};
    }
    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning& tuning) const override {
        return stages_workspace(make_jobs(problem, device.fp64), cut_for(device, tuning),
                                style_of(tuning, device));
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        const Traits& device = context.traits();
        auto launch = std::make_unique<KernelLaunch>();
        add_stages(*launch, context, make_jobs(problem, device.fp64), cut_for(device, tuning),
                   style_of(tuning, device),
                   static_cast<int>(problem.inputs.size() + problem.outputs.size()));
        return launch;
    }
};

}  // namespace

void add_generated_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<GeneratedEngine>());
}

}  // namespace dlprim::pointwise
