// SPDX-License-Identifier: MIT
// fold_batch_norms: y = (W x + b - mean) s + offset becomes W' x + b' with W' = s W and b' = (b -
// mean) s + offset, where s = scale / sqrt(variance + eps) for each output channel.
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"

#include <optional>

namespace dlprim {

namespace {

std::vector<int> count_uses(const Graph& graph) {
    std::vector<int> uses(graph.values.size(), 0);
    for (const Node& node : graph.nodes)
        if (!node.removed)
            for (ValueId input : node.inputs) ++uses[static_cast<std::size_t>(input)];
    for (const auto& output : graph.outputs) ++uses[static_cast<std::size_t>(output.first)];
    return uses;
}

}  // namespace

void fold_batch_norms(Graph& graph) {
    if (graph.training || !graph.gradients.empty()) return;
    const std::vector<int> uses = count_uses(graph);
    const std::size_t count = graph.nodes.size();
    for (std::size_t i = 0; i < count; ++i) {
        const Node norm = graph.nodes[i];
        if (norm.removed) continue;
        const std::optional<double> eps = norm.op->channel_norm_eps(norm.attrs);
        if (!eps || (!norm.engine.empty() && !norm.engine_by_type)) continue;
        const ValueId x = norm.inputs[0];
        const NodeId producer = graph.value(x).producer;
        if (producer < 0 || uses[static_cast<std::size_t>(x)] != 1) continue;
        const Node linear = graph.nodes[static_cast<std::size_t>(producer)];
        if (!linear.op->is_linear_layer() || !linear.epilogue.empty()) continue;
        const bool bias = linear.attrs.boolean("bias");
        if (linear.inputs.size() != (bias ? 3u : 2u)) continue;

        const ValueId weight = linear.inputs[1];
        if (!is_float(graph.spec(weight).dtype)) continue;  // it is stored in blocks
        const Shape& weight_shape = graph.shape(weight);
        std::vector<std::int64_t> per_output(static_cast<std::size_t>(weight_shape.rank()), 1);
        per_output[0] = weight_shape[0];
        const ValueId mean = norm.inputs[1], variance = norm.inputs[2];
        const bool affine = norm.inputs.size() == 5;

        const std::string at = linear.name + "/folded";
        ValueId s =
            affine ? graph.pointwise1(at + "_scale", "y0 = x1 / sqrt(x0 + p0)",
                                      {variance, norm.inputs[3]}, {*eps})
                   : graph.pointwise1(at + "_scale", "y0 = 1 / sqrt(x0 + p0)", {variance}, {*eps});
        const ValueId s_column = graph.reshape(at + "_column", s, Shape(per_output));
        const ValueId folded_weight =
            graph.pointwise1(at + "_weight", "y0 = x0 * x1", {weight, s_column});
        std::string code = bias ? "y0 = (x2 - x0) * x1" : "y0 = -x0 * x1";
        std::vector<ValueId> inputs{mean, s};
        if (bias) inputs.push_back(linear.inputs[2]);
        if (affine) {
            code += bias ? " + x3" : " + x2";
            inputs.push_back(norm.inputs[4]);
        }
        const ValueId folded_bias = graph.pointwise1(at + "_bias", code, inputs);

        Attrs attrs = linear.attrs;
        attrs.set("bias", true);
        graph.release_name(linear.name);
        const ValueId y = graph.add1(linear.op->type(), linear.name,
                                     {linear.inputs[0], folded_weight, folded_bias}, attrs);
        Node& made = graph.nodes.back();
        made.alias = linear.alias;
        made.engine = linear.engine;
        made.engine_from = linear.engine_from;
        made.engine_by_type = linear.engine_by_type;
        made.precision = linear.precision;
        made.fused = linear.fused;
        made.fused.push_back(norm.name);
        graph.value(y).name = graph.value(norm.outputs[0]).name;
        graph.replace_uses(norm.outputs[0], y);
        graph.nodes[i].removed = true;
        graph.nodes[static_cast<std::size_t>(producer)].removed = true;
    }
    graph.sort();
}

}  // namespace dlprim
