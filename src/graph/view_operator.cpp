// SPDX-License-Identifier: MIT
// ViewOperator: what all views have in common.
#include "graph/view_operator.hpp"

namespace dlprim {

std::vector<TensorSpec> ViewOperator::infer(const Attrs& attrs,
                                            std::span<const TensorSpec> inputs) const {
    return {{view(attrs, inputs[0].shape), inputs[0].dtype}};
}

void ViewOperator::gradient(GradientContext& context) const {
    const ValueId dy = context.output_gradients[0];
    if (dy == no_value || !context.wanted[0]) return;
    context.input_gradients[0] = context.graph.reshape(context.node.name + "/backward", dy,
                                                       context.graph.shape(context.node.inputs[0]));
}

void ViewOperator::oracle(OracleCall& call) const {
    call.outputs[0] = call.inputs[0];
    call.outputs[0].shape = view(call.attrs, call.inputs[0].shape);
}

void ViewOperator::oracle_backward(OracleBackwardCall& call) const {
    call.input_gradients[0] = call.output_gradients[0];
    call.input_gradients[0].shape = call.inputs[0].shape;
}

}  // namespace dlprim
