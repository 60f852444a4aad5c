// SPDX-License-Identifier: MIT
// inner_product.wgmma_planes (mma_planes): computes an InnerProduct as a 1x1 convolution of images
// of one pixel, by conv2d.wgmma_planes. Its weights are packed into halves once. Asynchronous
// copies then bring them to local memory at the full speed of device memory, whereas
// matmul.wgmma_split converts them to halves in every run.
#include "base/text.hpp"
#include "engine/matrix/unit.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/operators.hpp"
#include "ops/conv2d/options.hpp"

namespace dlprim::conv2d {

namespace {

Problem as_convolution(const Problem& problem) {
    Problem made = problem;
    const Shape& x = problem.inputs.at(0).shape;
    const std::int64_t samples = x[0], channels = x.product(1, x.rank());
    const std::int64_t outputs = problem.inputs.at(1).shape[0];
    made.op = forward_type;
    static const auto convolution = make_convolution(false);
    made.attrs = convolution->schema().complete(Attrs{{"channels_out", outputs},
                                                      {"kernel", std::int64_t{1}},
                                                      {"bias", problem.attrs.boolean("bias")}},
                                                "InnerProduct");
    made.inputs[0].shape = Shape{samples, channels, 1, 1};
    made.inputs[1].shape = Shape{outputs, channels, 1, 1};
    made.outputs[0].shape = Shape{samples, outputs, 1, 1};
    for (const EpilogueStage& stage : problem.epilogue)
        if (stage.kind == EpilogueStage::Kind::add)
            made.inputs.at(static_cast<std::size_t>(stage.operand)).shape = made.outputs[0].shape;
    return made;
}

class InnerProductPlanes : public Engine {
  public:
    explicit InnerProductPlanes(MatrixUnit unit)
        : Engine(cat("inner_product.", name_of(unit), "_planes"), "InnerProduct", false),
          convolution_(cat("conv2d.", name_of(unit), "_planes")) {}

    std::vector<std::string> sources() const override { return planes().sources(); }

    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (problem.inputs.at(0).shape.numel() == 0 || problem.outputs.at(0).shape.numel() == 0)
            return Verdict::no("it does not support empty tensors");
        return planes().is_applicable(device, as_convolution(problem));
    }
    bool computes_in(Precision precision) const override { return planes().computes_in(precision); }
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        return planes().layouts(device, as_convolution(problem));
    }
    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning& tuning) const override {
        return planes().workspace_bytes(device, as_convolution(problem), tuning);
    }
    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override {
        return planes().estimate(device, as_convolution(problem), tuning);
    }
    TuneSpace tune_space(const Traits& device, const Problem& problem) const override {
        return planes().tune_space(device, as_convolution(problem));
    }
    Tuning default_tuning(const Traits& device, const Problem& problem) const override {
        return planes().default_tuning(device, as_convolution(problem));
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning& tuning) const override {
        return planes().build(context, as_convolution(problem), tuning);
    }
    std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                          const Tuning& tuning, int index) const override {
        return planes().build_packing(context, as_convolution(problem), tuning, index);
    }

  private:
    const Engine& planes() const { return *EngineRegistry::instance().find(convolution_); }

    std::string convolution_;
};

}  // namespace

void add_inner_product_engine(EngineRegistry& registry) {
    for (const MatrixUnit unit : matrix_units)
        registry.add(std::make_unique<InnerProductPlanes>(unit));
}

}  // namespace dlprim::conv2d
