// SPDX-License-Identifier: MIT
// Pad: adds elements before and after dimensions. The gradient of constant padding, and of circular
// padding that crops as much as it adds (a rotation, torch.roll), is a Pad with the pads negated.
// The gradient of the other modes is PadBackward.
#include "ops/pad/operator.hpp"

#include "base/text.hpp"
#include "graph/declared_operator.hpp"

namespace dlprim::pad {

namespace {

struct BackwardOptions : WithSizes<ops::Pad> {
    static constexpr std::string_view type = "PadBackward";
};

/// dy -> dx. The size of x is an option, so that x need not be kept.
class PadBackward : public InternalOperator<BackwardOptions> {
  public:
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        return {{Shape(attrs.ints("sizes")), inputs[0].dtype}};
    }
};

}  // namespace

std::vector<TensorSpec> Pad::infer(const Attrs& attrs, std::span<const TensorSpec> inputs) const {
    const Shape& x = inputs[0].shape;
    return {{Options(attrs, x).output_shape(x), inputs[0].dtype}};
}

void Pad::gradient(GradientContext& context) const {
    const ValueId dy = context.output_gradients[0];
    if (dy == no_value || !context.wanted[0]) return;
    const Node& node = context.node;
    const std::string name = node.name + "/backward";
    const Shape& x = context.graph.shape(node.inputs[0]);
    const Options options(node.attrs, x);
    if (options.mode == PaddedCopy::Mode::constant || options.is_rotation()) {
        Ints pads = node.attrs.ints("pads");
        for (std::int64_t& p : pads) p = -p;
        context.input_gradients[0] = context.graph.add1(
            "Pad", name, {dy}, {{"pads", pads}, {"mode", node.attrs.text("mode")}});
    } else {
        Attrs attrs = node.attrs;
        attrs.set("sizes", x.to_vector());
        context.input_gradients[0] = context.graph.add1("PadBackward", name, {dy}, attrs);
    }
}

}  // namespace dlprim::pad

namespace dlprim {

void register_pad(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<pad::Pad>());
    operators.add(std::make_unique<pad::PadBackward>());
    add_copy_engines(engines, pad::movement);
    pad::add_gather_engine(engines);
    pad::add_gather_host_engine(engines);
}

}  // namespace dlprim
