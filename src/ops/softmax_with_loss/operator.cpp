// SPDX-License-Identifier: MIT
// SoftmaxWithLoss: shape rule, and the Softmax and NLLLoss that it consists of.
#include "ops/softmax_with_loss/operator.hpp"

#include "base/text.hpp"

namespace dlprim::softmax_with_loss {

const Schema& SoftmaxWithLoss::schema() const {
    static const Schema schema;
    return schema;
}

std::pair<int, std::int64_t> SoftmaxWithLoss::label_input(
    const Attrs&, std::span<const TensorSpec> inputs) const {
    return {1, inputs[0].shape[1]};
}

std::vector<TensorSpec> SoftmaxWithLoss::infer(const Attrs&,
                                               std::span<const TensorSpec> inputs) const {
    const Shape &x = inputs[0].shape, &label = inputs[1].shape;
    require(is_float(inputs[0].dtype), "logits have dtype ", name_of(inputs[0].dtype),
            ", a float type is needed");
    require(x.rank() == 2, "logits have shape ", x.str(), ", [batch, classes] is needed");
    require(label == Shape{x[0]} || label == (Shape{x[0], 1}), "labels have shape ", label.str(),
            ", the logits of shape ", x.str(), " need ", Shape{x[0]}.str());
    return {{Shape{1}, inputs[0].dtype}};
}

bool SoftmaxWithLoss::expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const ValueId logarithms =
        graph.add1("Softmax", node.name + "/log_softmax", {node.inputs[0]}, Attrs{{"log", true}});
    outputs = graph.add("NLLLoss", node.name, {logarithms, node.inputs[1]});
    graph.nodes.back().name = node.name;
    return true;
}

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<SoftmaxWithLoss>();
}

}  // namespace dlprim::softmax_with_loss
