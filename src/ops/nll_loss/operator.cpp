// SPDX-License-Identifier: MIT
// NLLLoss: options, shape rule, gradient, lowering to Pointwise.
#include "ops/nll_loss/operator.hpp"

#include "graph/lowering.hpp"
#include "ops/nll_loss/options.hpp"

namespace dlprim::nll_loss {

std::pair<int, std::int64_t> NLLLoss::label_input(const Attrs&,
                                                  std::span<const TensorSpec> inputs) const {
    return {1, inputs[0].shape[1]};
}

void check_operands(const Options& options, const Shape& shape, std::span<const TensorSpec> inputs,
                    std::size_t first) {
    const Shape& label = inputs[first].shape;
    require(label == options.label || label == options.label_kept, "labels have shape ", label,
            ", the input of shape ", shape, " needs ", options.label);
    if (inputs.size() <= first + 1) return;
    const Shape& weight = inputs[first + 1].shape;
    require(weight == Shape{shape[1]}, "the classes' weights have shape ", weight,
            ", the input of shape ", shape, " needs ", Shape{shape[1]});
}

std::vector<TensorSpec> NLLLoss::infer(const Attrs& attrs,
                                       std::span<const TensorSpec> inputs) const {
    const Options options(attrs, inputs[0].shape);
    require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
            ", a float type is needed");
    check_operands(options, inputs[0].shape, inputs, 1);
    const TensorSpec loss{options.output(), inputs[0].dtype};
    if (!options.return_weight) return {loss};
    return {loss, {Shape{1}, inputs[0].dtype}};
}

void NLLLoss::gradient(GradientContext& context) const {
    if (!context.wanted[0]) return;
    Graph& graph = context.graph;
    const Node& node = context.node;
    const Shape shape = graph.shape(node.inputs[0]);
    const Options options(node.attrs, shape);
    const std::string at = node.name + "/backward";
    ValueId dy = context.output_gradients[0];
    if (dy == no_value) return;
    if (options.weighs(node.inputs.size())) {
        // Without the dimension of classes that labels may keep, since it knows the shape by them.
        const ValueId label = graph.reshape(at + "/label", node.inputs[1], options.label);
        std::vector<ValueId> inputs{dy, label, total_weight(graph, node, options)};
        inputs.insert(inputs.end(), node.inputs.begin() + 2, node.inputs.end());
        context.input_gradients[0] = graph.add1("NLLLossBackward", at, inputs,
                                                Attrs{{"reduce", node.attrs.text("reduce")},
                                                      {"ignore_index", options.ignore_index},
                                                      {"classes", shape[1]}});
        return;
    }
    if (options.reduce == Reduce::none) dy = graph.reshape(at + "/dy", dy, options.label_kept);
    const ValueId label = graph.reshape(at + "/label", node.inputs[1], options.label_kept);
    context.input_gradients[0] = pointwise_over(graph, at, "y0 = index(1) == x1 ? -x0 * p0 : 0",
                                                {dy, label}, {options.factor}, shape)[0];
}

bool NLLLoss::lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const Options options(node.attrs, graph.shape(node.inputs[0]));
    if (options.weighs(node.inputs.size())) {
        outputs = weighted(graph, node, options);
        return true;
    }
    const ValueId label = graph.reshape(node.name + "/label", node.inputs[1], options.label_kept);
    const std::string over = options.reduce == Reduce::none ? "[1]" : "[]";
    const ValueId loss =
        graph.pointwise1(node.name, "y0 = sum" + over + "(index(1) == x1 ? -x0 * p0 : 0)",
                         {node.inputs[0], label}, {options.factor});
    outputs = {graph.reshape(node.name + "/shape", loss, options.output())};
    return true;
}

void register_nll_loss(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<NLLLoss>());
    operators.add(make_backward());
}

}  // namespace dlprim::nll_loss
