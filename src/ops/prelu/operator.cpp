// SPDX-License-Identifier: MIT
// PReLU: options, parameter, shape rule, gradient, lowering to Pointwise.
#include "ops/prelu/operator.hpp"

#include "graph/lowering.hpp"

namespace dlprim::prelu {

namespace {

/// The weight in a shape that broadcasts to inputs of this rank: [1] or [C, 1, ...].
ValueId broadcast_weight(Graph& graph, const std::string& name, ValueId weight, int rank) {
    const std::int64_t count = graph.shape(weight)[0];
    return count == 1 ? weight : graph.reshape(name, weight, channel_shape(count, rank));
}

void check_count(std::int64_t count, const Shape& x) {
    const std::int64_t channels = x.rank() >= 2 ? x[1] : 1;
    require(count == 1 || (count == channels && x.rank() >= 2), "num_parameters is ", count,
            ", the input of shape ", x.str(), " needs 1 or its number of channels");
}

}  // namespace

const Schema& PReLU::schema() const {
    static const Schema schema{
        {"num_parameters", OptionKind::integer, std::int64_t{1}, "1, or the number of channels"},
        {"init", OptionKind::number, 0.25, "the weight's first value"}};
    return schema;
}

std::vector<ParamSpec> PReLU::params(const Attrs& attrs, std::span<const TensorSpec> inputs) const {
    const std::int64_t count = attrs.integer("num_parameters");
    check_count(count, inputs[0].shape);
    return {{{Shape{count}, inputs[0].dtype}, Init::constant(attrs.number("init")), true}};
}

std::vector<TensorSpec> PReLU::infer(const Attrs& attrs, std::span<const TensorSpec> inputs) const {
    const std::int64_t count = attrs.integer("num_parameters");
    check_count(count, inputs[0].shape);
    require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
            ", a float type is needed");
    require(inputs.size() == 2, "has ", inputs.size() - 1, " parameters, one weight is needed");
    require(inputs[1].shape == Shape{count}, "weight has shape ", inputs[1].shape.str(),
            ", num_parameters needs ", Shape{count}.str());
    return {inputs[0]};
}

void PReLU::gradient(GradientContext& context) const {
    Graph& graph = context.graph;
    const Node& node = context.node;
    const ValueId dy = context.output_gradients[0], x = node.inputs[0], weight = node.inputs[1];
    const Shape shape = graph.shape(x), weight_shape = graph.shape(weight);
    const std::string at = node.name + "/backward";
    if (context.wanted[0])
        context.input_gradients[0] = graph.pointwise1(
            at, "y0 = x1 > 0 ? x0 : x0 * x2",
            {dy, x, broadcast_weight(graph, at + "/weight_shape", weight, shape.rank())});
    if (context.wanted[1]) {
        const std::string over = weight_shape[0] == 1 ? "[]" : axes_text(axes_but(shape.rank(), 1));
        const ValueId sum =
            graph.pointwise1(at + "/weight", "y0 = sum" + over + "(x1 > 0 ? 0 : x0 * x1)", {dy, x});
        context.input_gradients[1] = graph.reshape(at + "/weight_gradient", sum, weight_shape);
    }
}

bool PReLU::lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const ValueId x = node.inputs[0];
    const ValueId weight =
        broadcast_weight(graph, node.name + "/weight_shape", node.inputs[1], graph.shape(x).rank());
    outputs = {graph.pointwise1(node.name, "y0 = x0 > 0 ? x0 : x0 * x1", {x, weight})};
    return true;
}

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<PReLU>();
}

}  // namespace dlprim::prelu
