// SPDX-License-Identifier: MIT
// Flatten: a view of shape [N, product of the rest] of the same memory.
#include "graph/operator.hpp"
#include "base/text.hpp"

namespace dlprim {

namespace {

Shape flattened(const Shape& input) {
    require(input.rank() >= 1, "input is a scalar; Flatten needs a batch dimension");
    return {input[0], input.product(1, input.rank())};
}

class Flatten : public Operator {
  public:
    std::string_view type() const override { return "Flatten"; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    const Schema& schema() const override {
        static const Schema schema;
        return schema;
    }
    std::vector<TensorSpec> infer(const Attrs&, std::span<const TensorSpec> inputs) const override {
        return {{flattened(inputs[0].shape), inputs[0].dtype}};
    }
    bool differentiable() const override { return true; }
    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        if (dy == no_value || !context.wanted[0]) return;
        context.input_gradients[0] = context.graph.reshape(
            context.node.name + "/backward", dy, context.graph.shape(context.node.inputs[0]));
    }
    bool is_view() const override { return true; }
    void oracle(OracleCall& call) const override {
        call.outputs[0] = call.inputs[0];
        call.outputs[0].shape = flattened(call.inputs[0].shape);
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        call.input_gradients[0] = call.output_gradients[0];
        call.input_gradients[0].shape = call.inputs[0].shape;
    }
};

}  // namespace

void register_flatten() {
    OperatorRegistry::instance().add(std::make_unique<Flatten>());
}

}  // namespace dlprim
