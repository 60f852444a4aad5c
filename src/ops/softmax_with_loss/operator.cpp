// SPDX-License-Identifier: MIT
// SoftmaxWithLoss: shape rule, and the Softmax and NLLLoss that it consists of.
#include "ops/softmax_with_loss/operator.hpp"

#include "base/text.hpp"

namespace dlprim::softmax_with_loss {

std::pair<int, std::int64_t> SoftmaxWithLoss::label_input(
    const Attrs&, std::span<const TensorSpec> inputs) const {
    return {1, inputs[0].shape[1]};
}

std::vector<TensorSpec> SoftmaxWithLoss::infer(const Attrs&,
                                               std::span<const TensorSpec> inputs) const {
    const Shape &x = inputs[0].shape, &label = inputs[1].shape;
    require(is_float(inputs[0].dtype), "logits have dtype ", name_of(inputs[0].dtype),
            ", a float type is needed");
    require(x.rank() >= 2, "logits have shape ", x.str(),
            ", [batch, classes] or [batch, classes, height, width] is needed");
    Ints dims = x.to_vector();
    dims[1] = 1;
    const Shape kept(dims);
    dims.erase(dims.begin() + 1);
    const Shape needed(dims);
    require(label == needed || label == kept, "labels have shape ", label.str(),
            ", the logits of shape ", x.str(), " need ", needed.str());
    return {{Shape{1}, inputs[0].dtype}};
}

bool SoftmaxWithLoss::expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const ValueId logarithms =
        graph.add1("Softmax", node.name + "/log_softmax", {node.inputs[0]}, Attrs{{"log", true}});
    Attrs how;
    if (node.attrs.integer("ignore_index") != no_label)
        how.set("ignore_index", node.attrs.integer("ignore_index"));
    outputs = graph.add("NLLLoss", node.name, {logarithms, node.inputs[1]}, how);
    graph.nodes.back().name = node.name;
    return true;
}

}  // namespace dlprim::softmax_with_loss

namespace dlprim {

void register_softmax_with_loss(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<softmax_with_loss::SoftmaxWithLoss>());
}

}  // namespace dlprim
