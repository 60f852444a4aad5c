// SPDX-License-Identifier: MIT
// Abs: shape rule, gradient sign(x) dy (0 at 0, as in PyTorch), lowering to Pointwise.
#include "ops/abs/operator.hpp"

namespace dlprim::abs_op {

const Schema& Abs::schema() const {
    static const Schema schema;
    return schema;
}

std::vector<TensorSpec> Abs::infer(const Attrs&, std::span<const TensorSpec> inputs) const {
    return {inputs[0]};
}

void Abs::gradient(GradientContext& context) const {
    const Node& node = context.node;
    context.input_gradients[0] =
        context.graph.pointwise1(node.name + "/backward", "y0 = x0 * sign(x1)",
                                 {context.output_gradients[0], node.inputs[0]});
}

bool Abs::lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    outputs = {graph.pointwise1(node.name, "y0 = abs(x0)", {node.inputs[0]})};
    return true;
}

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<Abs>();
}

}  // namespace dlprim::abs_op
