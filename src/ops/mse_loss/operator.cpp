// SPDX-License-Identifier: MIT
// MSELoss: options, shape rule, gradient, lowering to Pointwise.
#include "ops/mse_loss/operator.hpp"

#include "graph/lowering.hpp"
#include "ops/mse_loss/options.hpp"

namespace dlprim::mse_loss {

const Schema& MSELoss::schema() const {
    static const Schema schema{{"reduce", OptionKind::text, std::string("mean"),
                                "mean or sum over the elements, or none"}};
    return schema;
}

std::vector<TensorSpec> MSELoss::infer(const Attrs& attrs,
                                       std::span<const TensorSpec> inputs) const {
    require(inputs[0].shape == inputs[1].shape, "inputs have shapes ", inputs[0].shape.str(),
            " and ", inputs[1].shape.str(), ", they should be the same");
    require(is_float(inputs[0].dtype) && inputs[0].dtype == inputs[1].dtype, "inputs have dtypes ",
            name_of(inputs[0].dtype), " and ", name_of(inputs[1].dtype),
            ", one float type is needed");
    return {{Options(attrs, inputs[0].shape).output, inputs[0].dtype}};
}

void MSELoss::gradient(GradientContext& context) const {
    Graph& graph = context.graph;
    const Node& node = context.node;
    const Options options(node.attrs, graph.shape(node.inputs[0]));
    const std::vector<ValueId> inputs{context.output_gradients[0], node.inputs[0], node.inputs[1]};
    const Doubles scalars{2 * options.factor};
    const std::string at = node.name + "/backward";
    auto& made = context.input_gradients;
    if (context.wanted[0] && context.wanted[1]) {
        const auto both =
            graph.pointwise(at, "d = x0 * (x1 - x2) * p0; y0 = d; y1 = -d", inputs, scalars);
        made[0] = both[0];
        made[1] = both[1];
    } else if (context.wanted[0]) {
        made[0] = graph.pointwise1(at, "y0 = x0 * (x1 - x2) * p0", inputs, scalars);
    } else {
        made[1] = graph.pointwise1(at, "y0 = x0 * (x2 - x1) * p0", inputs, scalars);
    }
}

bool MSELoss::lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const Options options(node.attrs, graph.shape(node.inputs[0]));
    const std::string prefix = "d = x0 - x1; y0 = ";
    if (options.reduce == Reduce::none) {
        outputs = {graph.pointwise1(node.name, prefix + "d * d", node.inputs)};
        return true;
    }
    const ValueId loss =
        graph.pointwise1(node.name, prefix + "sum[](d * d * p0)", node.inputs, {options.factor});
    outputs = {graph.reshape(node.name + "/shape", loss, options.output)};
    return true;
}

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<MSELoss>();
}

}  // namespace dlprim::mse_loss
