// SPDX-License-Identifier: MIT
// GroupNorm: options, parameters, shape rule, expansion.
#include "ops/groupnorm/operator.hpp"

#include "graph/lowering.hpp"
#include "ops/groupnorm/options.hpp"

namespace dlprim::groupnorm {

std::vector<ParamSpec> GroupNorm::params(const Attrs& attrs,
                                         std::span<const TensorSpec> inputs) const {
    const Options options(attrs, inputs[0].shape);
    if (!options.affine) return {};
    const TensorSpec spec{Shape{options.channels}, inputs[0].dtype};
    return {{spec, Init::constant(1), true}, {spec, Init::constant(0), true}};
}

std::vector<TensorSpec> GroupNorm::infer(const Attrs& attrs,
                                         std::span<const TensorSpec> inputs) const {
    const Options options(attrs, inputs[0].shape);
    require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
            ", a float type is needed");
    const std::size_t wanted = options.affine ? 3 : 1;
    require(inputs.size() == wanted, "has ", inputs.size() - 1, " parameters, ", wanted - 1,
            " are needed");
    for (std::size_t i = 1; i < inputs.size(); ++i)
        require(inputs[i].shape == Shape{options.channels}, "parameter ", i - 1, " has shape ",
                inputs[i].shape.str(), ", the input of shape ", inputs[0].shape.str(), " needs ",
                Shape{options.channels}.str());
    if (!attrs.boolean("return_statistics")) return {inputs[0]};
    const TensorSpec statistic{options.statistic,
                               inputs[0].dtype == DType::f64 ? DType::f64 : DType::f32};
    return {inputs[0], statistic, statistic};
}

bool GroupNorm::expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const Shape shape = graph.shape(node.inputs[0]);
    const Options options(node.attrs, shape);
    const ValueId rows = graph.reshape(node.name + "/rows", node.inputs[0], options.matrix);
    const bool more = node.attrs.boolean("return_statistics");
    const std::vector<ValueId> made = graph.add("NormalizeRows", node.name + "/normalize", {rows},
                                                Attrs{{"eps", options.eps}, {"return_mean", more}});
    ValueId y = graph.reshape(node.name + "/shape", made[0], shape);
    if (options.affine) {
        const Shape per_channel = channel_shape(options.channels, shape.rank());
        y = graph.pointwise1(node.name, "y0 = x0 * x1 + x2",
                             {y, graph.reshape(node.name + "/weight", node.inputs[1], per_channel),
                              graph.reshape(node.name + "/bias", node.inputs[2], per_channel)});
        graph.nodes.back().name = node.name;
    }
    outputs = {y};
    if (more)
        for (const ValueId value : {made[2], made[1]})
            outputs.push_back(graph.reshape(node.name + "/statistic", value, options.statistic));
    return true;
}

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<GroupNorm>();
}

}  // namespace dlprim::groupnorm
