// SPDX-License-Identifier: MIT
// Reduction: options, shape rule, gradient, lowering to Pointwise.
#include "ops/reduction/operator.hpp"

#include "graph/lowering.hpp"
#include "ops/reduction/options.hpp"

namespace dlprim::reduction {

std::vector<TensorSpec> Reduction::infer(const Attrs& attrs,
                                         std::span<const TensorSpec> inputs) const {
    require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
            ", a float type is needed");
    return {{Options(attrs, inputs[0].shape).output, inputs[0].dtype}};
}

void Reduction::gradient(GradientContext& context) const {
    Graph& graph = context.graph;
    const Node& node = context.node;
    const ValueId x = node.inputs[0];
    const Shape shape = graph.shape(x);
    const Options options(node.attrs, shape);
    const std::string at = node.name + "/backward";
    const ValueId dy = graph.reshape(at + "/dy", context.output_gradients[0], options.kept);
    ValueId& dx = context.input_gradients[0];
    switch (options.method) {
        case Method::sum:
        case Method::mean:
            dx = pointwise_over(graph, at, "y0 = x0 * p0", {dy}, {options.scale}, shape)[0];
            break;
        case Method::sumsq:
            dx = graph.pointwise1(at, "y0 = x0 * x1 * p0", {dy, x}, {2 * options.scale});
            break;
        case Method::abssum:
            dx = graph.pointwise1(at, "y0 = x0 * sign(x1) * p0", {dy, x}, {options.scale});
            break;
    }
}

bool Reduction::lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const Options options(node.attrs, graph.shape(node.inputs[0]));
    std::string each;
    switch (options.method) {
        case Method::sum:
        case Method::mean:
            each = "x0";
            break;
        case Method::sumsq:
            each = "x0 * x0";
            break;
        case Method::abssum:
            each = "abs(x0)";
            break;
    }
    // The factor is applied after the sum, so that small factors cost no accuracy.
    ValueId y = node.inputs[0];
    const std::string at = node.name + "/sum";
    if (options.axes.empty()) {
        outputs = {graph.pointwise1(node.name, "y0 = (" + each + ") * p0", {y}, {options.scale})};
        return true;
    }
    y = graph.pointwise1(node.name, cat("y0 = sum", axes_text(options.axes), "(", each, ")"), {y});
    y = graph.reshape(at, y, options.output);
    if (options.scale != 1)
        y = graph.pointwise1(node.name + "/scale", "y0 = x0 * p0", {y}, {options.scale});
    outputs = {y};
    return true;
}

}  // namespace dlprim::reduction

namespace dlprim {

void register_reduction(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<reduction::Reduction>());
}

}  // namespace dlprim
