// SPDX-License-Identifier: MIT
// GlobalPooling: options, shape rule, gradient, lowering to Pointwise.
#include "ops/global_pooling/operator.hpp"

#include "graph/lowering.hpp"
#include "ops/global_pooling/options.hpp"

namespace dlprim::global_pooling {

std::vector<TensorSpec> GlobalPooling::infer(const Attrs& attrs,
                                             std::span<const TensorSpec> inputs) const {
    const Options options(attrs);
    const Shape& x = inputs[0].shape;
    require(x.rank() == 4, "input has shape ", x.str(), ", [N, C, H, W] is needed");
    require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
            ", a float type is needed");
    return {{Shape{x[0], x[1], 1, 1}, inputs[0].dtype}};
}

void GlobalPooling::gradient(GradientContext& context) const {
    Graph& graph = context.graph;
    const Node& node = context.node;
    const ValueId dy = context.output_gradients[0], x = node.inputs[0], y = node.outputs[0];
    const Shape shape = graph.shape(x);
    const std::string at = node.name + "/backward";
    ValueId& dx = context.input_gradients[0];
    if (!Options(node.attrs).maximum) {
        dx = pointwise_over(graph, at, "y0 = x0 * p0", {dy},
                            {1.0 / static_cast<double>(shape[2] * shape[3])}, shape)[0];
        return;
    }
    // The first of equal maxima gets the whole gradient, as in PyTorch.
    const auto width = static_cast<double>(shape[3]),
               plane = static_cast<double>(shape[2] * shape[3]);
    ValueId first =
        graph.pointwise1(at + "/first", "y0 = min[2,3](x0 == x1 ? index(2) * p0 + index(3) : p1)",
                         {x, y}, {width, plane});
    first = graph.reshape(at + "/first_shape", first, graph.shape(y));
    dx = pointwise_over(graph, at, "y0 = index(2) * p0 + index(3) == x1 ? x0 : 0", {dy, first},
                        {width}, shape)[0];
}

bool GlobalPooling::lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const std::string method = Options(node.attrs).maximum ? "max" : "mean";
    const ValueId y = graph.pointwise1(node.name, "y0 = " + method + "[2,3](x0)", {node.inputs[0]});
    outputs = {graph.reshape(node.name + "/shape", y, graph.shape(node.outputs[0]))};
    return true;
}

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<GlobalPooling>();
}

}  // namespace dlprim::global_pooling
