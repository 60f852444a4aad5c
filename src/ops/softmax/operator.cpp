// SPDX-License-Identifier: MIT
// Softmax: options, shape rule, gradient, lowering to Pointwise.
#include "ops/softmax/operator.hpp"

#include "graph/lowering.hpp"
#include "ops/softmax/options.hpp"

namespace dlprim::softmax {

std::vector<TensorSpec> Softmax::infer(const Attrs& attrs,
                                       std::span<const TensorSpec> inputs) const {
    const Options options(attrs, inputs[0].shape);
    require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
            ", a float type is needed");
    return {inputs[0]};
}

ValueId gradient_from_output(Graph& graph, const std::string& at, const Options& options,
                             ValueId dy, ValueId y) {
    const Ints axes{options.axis};
    const std::string sum_code = "y0 = sum" + axes_text(axes);
    const Shape kept = keep_dims(graph.shape(y), axes);
    if (options.log) {
        ValueId sum = graph.pointwise1(at + "/sum", sum_code + "(x0)", {dy});
        sum = graph.reshape(at + "/kept", sum, kept);
        return graph.pointwise1(at, "y0 = x0 - exp(x1) * x2", {dy, y, sum});
    }
    ValueId sum = graph.pointwise1(at + "/sum", sum_code + "(x0 * x1)", {dy, y});
    sum = graph.reshape(at + "/kept", sum, kept);
    return graph.pointwise1(at, "y0 = (x0 - x2) * x1", {dy, y, sum});
}

void Softmax::gradient(GradientContext& context) const {
    const Node& node = context.node;
    const ValueId y = node.outputs[0];
    context.input_gradients[0] = gradient_from_output(context.graph, node.name + "/backward",
                                                      Options(node.attrs, context.graph.shape(y)),
                                                      context.output_gradients[0], y);
}

bool Softmax::lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const ValueId x = node.inputs[0];
    const Shape shape = graph.shape(x);
    const Options options(node.attrs, shape);
    const Ints axes{options.axis};
    const Shape kept = keep_dims(shape, axes);
    const std::string over = axes_text(axes);
    ValueId top = graph.pointwise1(node.name + "/max", "y0 = max" + over + "(x0)", {x});
    top = graph.reshape(node.name + "/max_kept", top, kept);
    ValueId sum =
        graph.pointwise1(node.name + "/sum", "y0 = sum" + over + "(exp(x0 - x1))", {x, top});
    sum = graph.reshape(node.name + "/sum_kept", sum, kept);
    outputs = {graph.pointwise1(node.name,
                                options.log ? "y0 = x0 - x1 - log(x2)" : "y0 = exp(x0 - x1) / x2",
                                {x, top, sum})};
    return true;
}

void register_softmax(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<Softmax>());
    operators.add(make_backward());
}

}  // namespace dlprim::softmax
