// SPDX-License-Identifier: MIT
// Interpolation: images in another size. Its gradient is computed per input element, so that it is
// deterministic.
#include "ops/interpolation/operator.hpp"

#include "graph/declared_operator.hpp"
#include "ops/interpolation/options.hpp"

namespace dlprim::interpolation {

namespace {

struct BackwardOptions : WithSizes<ops::Interpolation> {
    static constexpr std::string_view type = "InterpolationBackward";
};

/// dy -> dx.
class InterpolationBackward : public InternalOperator<BackwardOptions> {
  public:
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        return {{Shape(attrs.ints("sizes")), inputs[0].dtype}};
    }
};

}  // namespace

std::vector<TensorSpec> Interpolation::infer(const Attrs& attrs,
                                             std::span<const TensorSpec> inputs) const {
    return {{Options(attrs).output_shape(inputs[0].shape), inputs[0].dtype}};
}

bool Interpolation::expand(Graph& graph, const Node& given, std::vector<ValueId>& outputs) const {
    // The engines of doubles are Resize's.
    if (graph.spec(given.inputs[0]).dtype != DType::f64) return false;
    const Node node = given;
    const Options options(node.attrs);
    const Shape y = graph.shape(node.outputs[0]);
    Attrs attrs{{"method", options.mode == Mode::bilinear ? std::string("linear")
                                                          : node.attrs.text("method")},
                {"output", Ints{y[2], y[3]}},
                {"align_corners", options.align_corners}};
    if (options.scale_y) attrs.set("scales", Doubles{*options.scale_y, *options.scale_x});
    outputs = graph.add("Resize", node.name, {node.inputs[0]}, attrs);
    return true;
}

void Interpolation::gradient(GradientContext& context) const {
    const ValueId dy = context.output_gradients[0];
    if (dy == no_value || !context.wanted[0]) return;
    Attrs attrs = context.node.attrs;
    attrs.set("sizes", context.graph.shape(context.node.inputs[0]).to_vector());
    context.input_gradients[0] =
        context.graph.add1("InterpolationBackward", context.node.name + "/backward", {dy}, attrs);
}

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<Interpolation>();
}

std::unique_ptr<Operator> make_backward() {
    return std::make_unique<InterpolationBackward>();
}

}  // namespace dlprim::interpolation
