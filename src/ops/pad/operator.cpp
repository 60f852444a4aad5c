// SPDX-License-Identifier: MIT
// Pad: adds elements before and after dimensions. The gradient of constant padding, and of circular
// padding that crops as much as it adds (a rotation, torch.roll), is a Pad with the pads negated.
// The gradient of the other modes is PadBackward.
#include "ops/pad/operator.hpp"

#include "base/text.hpp"

namespace dlprim::pad {

namespace {

const Schema& pad_schema() {
    static const Schema schema{
        {"pads", OptionKind::integers, Ints{},
         "in front and behind, from the last dimension backward; negative crops", true, "pad"},
        {"mode", OptionKind::text, std::string("constant"),
         "constant, reflect, replicate or circular"},
        {"value", OptionKind::number, 0.0, "what constant pads with"}};
    return schema;
}

/// dy -> dx. The size of x is an option, so that x need not be kept.
class PadBackward : public Operator {
  public:
    std::string_view type() const override { return "PadBackward"; }
    bool internal() const override { return true; }
    const Schema& schema() const override {
        static const Schema schema{
            {"pads", OptionKind::integers, Ints{}, "as of Pad", true},
            {"mode", OptionKind::text, std::string("reflect"), "reflect, replicate or circular"},
            {"value", OptionKind::number, 0.0, "not used"},
            {"sizes", OptionKind::integers, Ints{}, "the shape of Pad's input", true}};
        return schema;
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        return {{Shape(attrs.ints("sizes")), inputs[0].dtype}};
    }
};

}  // namespace

const Schema& Pad::schema() const {
    return pad_schema();
}

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

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<Pad>();
}

std::unique_ptr<Operator> make_backward() {
    return std::make_unique<PadBackward>();
}

}  // namespace dlprim::pad
