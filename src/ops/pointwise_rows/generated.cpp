// SPDX-License-Identifier: MIT
// pointwise_rows.generated: one kernel, which is generated for the program (engine/pointwise/).
#include "engine/pointwise/stages.hpp"
#include "ops/pointwise_rows/operator.hpp"

#include <algorithm>

namespace dlprim::pointwise_rows {

namespace {

class Generated final : public Engine {
  public:
    Generated() : Engine("pointwise_rows.generated", Options::type, false) {}

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (device.host) return Verdict::no("it runs on OpenCL devices only");
        if (!problem.epilogue.empty())
            return Verdict::no("it does not support an epilogue, which belongs into its program");
        for (const auto* operands : {&problem.inputs, &problem.outputs})
            for (const Operand& operand : *operands)
                if (operand.dtype == DType::f64) return Verdict::no("it computes in float");
        return Verdict::yes();
    }
    bool addresses_strides() const override { return true; }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, 0.8);
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        auto launch = std::make_unique<KernelLaunch>();
        pointwise::add_rows(
            *launch, context, pointwise::make_row_job(problem),
            context.traits().wide_vectors ? pointwise::Style::vector : pointwise::Style::group);
        return launch;
    }
};

}  // namespace

void add_generated_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Generated>());
}

}  // namespace dlprim::pointwise_rows
