// SPDX-License-Identifier: MIT
// Threshold: option, shape rule, lowering to Pointwise.
#include "ops/threshold/operator.hpp"
#include "base/text.hpp"

namespace dlprim::threshold {

const Schema& Threshold::schema() const {
    static const Schema schema{{"threshold", OptionKind::number, 0.0,
                                "the output is 1 where the input is greater, else 0"}};
    return schema;
}

std::vector<TensorSpec> Threshold::infer(const Attrs&, std::span<const TensorSpec> inputs) const {
    require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
            ", a float type is needed");
    return {inputs[0]};
}

void Threshold::gradient(GradientContext&) const {}  // the gradient of a step function is zero

bool Threshold::lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    outputs = {graph.pointwise1(node.name, "y0 = x0 > p0 ? 1 : 0", {node.inputs[0]},
                                {node.attrs.number("threshold")})};
    return true;
}

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<Threshold>();
}

}  // namespace dlprim::threshold
