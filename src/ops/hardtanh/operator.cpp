// SPDX-License-Identifier: MIT
// Hardtanh: options, shape rule, gradient (dy strictly between the limits, as in PyTorch),
// lowering.
#include "ops/hardtanh/operator.hpp"
#include "base/text.hpp"

namespace dlprim::hardtanh {

const Schema& Hardtanh::schema() const {
    static const Schema schema{{"min_val", OptionKind::number, -1.0, "smallest output"},
                               {"max_val", OptionKind::number, 1.0, "largest output"}};
    return schema;
}

std::vector<TensorSpec> Hardtanh::infer(const Attrs& attrs,
                                        std::span<const TensorSpec> inputs) const {
    require(attrs.number("min_val") <= attrs.number("max_val"), "min_val ", attrs.number("min_val"),
            " is greater than max_val ", attrs.number("max_val"));
    require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
            ", a float type is needed");
    return {inputs[0]};
}

void Hardtanh::gradient(GradientContext& context) const {
    // The gradient uses the output: between the limits it equals the input, so the input need not
    // be kept.
    const Node& node = context.node;
    context.input_gradients[0] =
        context.graph.pointwise1(node.name + "/backward", "y0 = x1 > p0 && x1 < p1 ? x0 : 0",
                                 {context.output_gradients[0], node.outputs[0]},
                                 {node.attrs.number("min_val"), node.attrs.number("max_val")});
}

bool Hardtanh::lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    // Comparisons instead of min and max, so that NaN propagates.
    outputs = {graph.pointwise1(node.name, "y0 = x0 < p0 ? p0 : x0 > p1 ? p1 : x0",
                                {node.inputs[0]},
                                {node.attrs.number("min_val"), node.attrs.number("max_val")})};
    return true;
}

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<Hardtanh>();
}

}  // namespace dlprim::hardtanh
