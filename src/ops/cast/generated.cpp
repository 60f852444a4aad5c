// SPDX-License-Identifier: MIT
// cast.generated: to the float types of 16 and 32 bits, by the kernels that the generator of
// pointwise programs makes of "y0 = x0". They read and write several elements per work-item, in
// strided, channels_last and blocked memory, too.
#include "graph/operator.hpp"
#include "ops/cast/operator.hpp"

namespace dlprim::cast {

namespace {

/// The same conversion as a pointwise program.
Problem as_program(const Problem& problem) {
    Problem program = problem;
    program.op = "Pointwise";
    const std::string to(name_of(problem.outputs[0].dtype));
    program.attrs =
        OperatorRegistry::instance()
            .complete(program.op, {{"code", std::string("y0 = x0")}, {"dtypes", Strings{to}}}, "")
            .attrs;
    return program;
}

class Generated final : public Engine {
  public:
    Generated() : Engine("cast.generated", "Cast", false) {}
    bool addresses_strides() const override { return programs().addresses_strides(); }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (!is_program(problem))
            return Verdict::no("it is made for results of float types of 16 and 32 bits alone");
        return programs().is_applicable(device, as_program(problem));
    }
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        return programs().layouts(device, as_program(problem));
    }
    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        return programs().estimate(device, as_program(problem), tuning);
    }
    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        return programs().tune_space(device, as_program(problem));
    }
    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        return programs().default_tuning(device, as_program(problem));
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        return programs().build(context, as_program(problem), tuning);
    }

  private:
    static const Engine& programs() {
        return *EngineRegistry::instance().find("pointwise.generated");
    }
};

}  // namespace

bool is_program(const Problem& problem) {
    const DType from = problem.inputs[0].dtype, to = problem.outputs[0].dtype;
    const bool usual = to == DType::f32 || to == DType::f16 || to == DType::bf16;
    return usual && !is_narrow(from) && from != DType::f64 && !problem.attrs.boolean("reinterpret");
}

void add_generated_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Generated>());
}

}  // namespace dlprim::cast
