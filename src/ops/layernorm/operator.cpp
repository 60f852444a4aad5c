// SPDX-License-Identifier: MIT
// LayerNorm: options, parameters, shape rule, expansion.
#include "ops/layernorm/operator.hpp"

#include "graph/lowering.hpp"
#include "ops/layernorm/options.hpp"

namespace dlprim::layernorm {

std::vector<ParamSpec> LayerNorm::params(const Attrs& attrs,
                                         std::span<const TensorSpec> inputs) const {
    const Options options(attrs, inputs[0].shape);
    const TensorSpec spec{options.normalized, inputs[0].dtype};
    std::vector<ParamSpec> result{{spec, Init::constant(1), true}, {spec, Init::constant(0), true}};
    result.resize(options.parameters());
    return result;
}

std::vector<TensorSpec> LayerNorm::infer(const Attrs& attrs,
                                         std::span<const TensorSpec> inputs) const {
    const Options options(attrs, inputs[0].shape);
    require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
            ", a float type is needed");
    require(inputs.size() == 1 + options.parameters(), "has ", inputs.size() - 1, " parameters, ",
            options.parameters(), " are needed");
    for (std::size_t i = 1; i < inputs.size(); ++i)
        require(inputs[i].shape == options.normalized, "parameter ", i - 1, " has shape ",
                inputs[i].shape.str(), ", the input of shape ", inputs[0].shape.str(), " needs ",
                options.normalized.str());
    if (!attrs.boolean("return_statistics")) return {inputs[0]};
    const TensorSpec statistic{options.statistic,
                               inputs[0].dtype == DType::f64 ? DType::f64 : DType::f32};
    return {inputs[0], statistic, statistic};
}

bool LayerNorm::expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const Shape shape = graph.shape(node.inputs[0]);
    const Options options(node.attrs, shape);
    const ValueId rows = graph.reshape(node.name + "/rows", node.inputs[0], options.matrix);
    const bool more = node.attrs.boolean("return_statistics");
    const std::vector<ValueId> made = graph.add("NormalizeRows", node.name + "/normalize", {rows},
                                                Attrs{{"eps", options.eps}, {"return_mean", more}});
    ValueId y = made[0];
    if (options.affine) {
        // On rows, too, so that it merges with the end of NormalizeRows.
        std::vector<ValueId> inputs{y};
        for (std::size_t i = 1; i < node.inputs.size(); ++i)
            inputs.push_back(
                graph.reshape(node.name + "/line", node.inputs[i], {options.matrix[1]}));
        y = graph.pointwise1(node.name, options.bias ? "y0 = x0 * x1 + x2" : "y0 = x0 * x1",
                             inputs);
        graph.nodes.back().name = node.name;
    }
    outputs = {graph.reshape(node.name + "/shape", y, shape)};
    if (more)
        for (const ValueId value : {made[2], made[1]})
            outputs.push_back(graph.reshape(node.name + "/statistic", value, options.statistic));
    return true;
}

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<LayerNorm>();
}

}  // namespace dlprim::layernorm
