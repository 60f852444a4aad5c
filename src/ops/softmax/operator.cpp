// SPDX-License-Identifier: MIT
// Softmax: options, shape rule, gradient, lowering to Pointwise.
#include "ops/softmax/operator.hpp"

#include "graph/lowering.hpp"
#include "ops/softmax/options.hpp"

namespace dlprim::softmax {

const Schema& Softmax::schema() const {
    static const Schema schema{{"log", OptionKind::boolean, false, "the logarithm of the softmax"},
                               {"axis", OptionKind::integer, std::int64_t{1},
                                "the dimension along which the results sum to 1", false, "dim"}};
    return schema;
}

std::vector<TensorSpec> Softmax::infer(const Attrs& attrs,
                                       std::span<const TensorSpec> inputs) const {
    const Options options(attrs, inputs[0].shape);
    require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
            ", a float type is needed");
    return {inputs[0]};
}

void Softmax::gradient(GradientContext& context) const {
    Graph& graph = context.graph;
    const Node& node = context.node;
    const ValueId dy = context.output_gradients[0], y = node.outputs[0];
    const Shape shape = graph.shape(y);
    const Options options(node.attrs, shape);
    const Ints axes{options.axis};
    const std::string at = node.name + "/backward", sum_code = "y0 = sum" + axes_text(axes);
    const Shape kept = keep_dims(shape, axes);
    ValueId& dx = context.input_gradients[0];
    if (options.log) {
        ValueId sum = graph.pointwise1(at + "/sum", sum_code + "(x0)", {dy});
        sum = graph.reshape(at + "/kept", sum, kept);
        dx = graph.pointwise1(at, "y0 = x0 - exp(x1) * x2", {dy, y, sum});
    } else {
        ValueId sum = graph.pointwise1(at + "/sum", sum_code + "(x0 * x1)", {dy, y});
        sum = graph.reshape(at + "/kept", sum, kept);
        dx = graph.pointwise1(at, "y0 = (x0 - x2) * x1", {dy, y, sum});
    }
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

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<Softmax>();
}

}  // namespace dlprim::softmax
