// SPDX-License-Identifier: MIT
// BatchNormTraining: batch statistics in one pass over x, application in a second; its gradient,
// the same. Sums run over x less a shift near the mean, so that a mean far from zero costs no
// accuracy.
#include "graph/lowering.hpp"
#include "ops/batchnorm/operator.hpp"

namespace dlprim::batchnorm {

namespace {

/// [1, C, 1, ...]: the mean of the first sample, which is within sqrt(N) deviations of the mean of
/// all N; of all samples where there are few.
ValueId make_shift(Graph& graph, const std::string& name, ValueId x) {
    const Shape shape = graph.shape(x);
    const Shape per_channel = channel_shape(shape[1], shape.rank());
    if (shape[0] >= 4) {
        x = graph.add1(
            "Slice", name + "/first", {x},
            Attrs{{"dim", std::int64_t{0}}, {"begin", std::int64_t{0}}, {"end", std::int64_t{1}}});
        if (shape.rank() == 2) return x;
    }
    const std::string over = axes_text(axes_but(shape.rank(), 1));
    return graph.reshape(name + "/shift_shape",
                         graph.pointwise1(name + "/shift", "y0 = mean" + over + "(x0)", {x}),
                         per_channel);
}

}  // namespace

const Schema& BatchNormTraining::schema() const {
    static const Schema schema{{"eps", OptionKind::number, 1e-5, "added to the variance"}};
    return schema;
}

std::vector<TensorSpec> BatchNormTraining::infer(const Attrs&,
                                                 std::span<const TensorSpec> inputs) const {
    const Shape& shape = inputs[0].shape;
    const TensorSpec statistic{channel_shape(shape[1], shape.rank()), inputs[0].dtype};
    return {inputs[0], statistic, statistic, statistic, statistic};
}

void BatchNormTraining::gradient(GradientContext& context) const {
    Graph& graph = context.graph;
    const Node& node = context.node;
    const bool affine = node.inputs.size() == 3;
    const ValueId dy = context.output_gradients[0], x = node.inputs[0];
    if (dy == no_value) return;
    const ValueId shift = node.outputs[1], rest = node.outputs[2], rstd = node.outputs[3];
    const Shape shape = graph.shape(x);
    const Shape per_channel = channel_shape(shape[1], shape.rank());
    const std::string at = node.name + "/backward", over = axes_text(axes_but(shape.rank(), 1));
    const auto sums = graph.pointwise(
        at + "/sums", "y0 = sum" + over + "(x0 * (x1 - x2 - x3) * x4); y1 = sum" + over + "(x0)",
        {dy, x, shift, rest, rstd});
    if (affine) {
        context.input_gradients[1] = graph.reshape(at + "/scale", sums[0], Shape{shape[1]});
        context.input_gradients[2] = graph.reshape(at + "/offset", sums[1], Shape{shape[1]});
    }
    if (!context.wanted[0]) return;
    const double share = static_cast<double>(shape[1]) / static_cast<double>(shape.numel());
    std::vector<ValueId> inputs{dy,
                                x,
                                shift,
                                rest,
                                rstd,
                                graph.reshape(at + "/with_x", sums[0], per_channel),
                                graph.reshape(at + "/alone", sums[1], per_channel)};
    std::string code = "y0 = (x0 - x6 * p0 - (x1 - x2 - x3) * (x4 * x5 * p0)) * x4";
    if (affine) {
        inputs.push_back(graph.reshape(at + "/factor", node.inputs[1], per_channel));
        code += " * x7";
    }
    context.input_gradients[0] = graph.pointwise1(at, code, inputs, {share});
}

bool BatchNormTraining::lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const ValueId x = node.inputs[0];
    const Shape shape = graph.shape(x);
    const Shape per_channel = channel_shape(shape[1], shape.rank());
    const std::string over = axes_text(axes_but(shape.rank(), 1));
    const ValueId shift = make_shift(graph, node.name, x);
    const auto means = graph.pointwise(
        node.name + "/statistics",
        "d = x0 - x1; y0 = mean" + over + "(d); y1 = mean" + over + "(d * d)", {x, shift});
    const ValueId rest = graph.reshape(node.name + "/rest", means[0], per_channel);
    const ValueId square = graph.reshape(node.name + "/square", means[1], per_channel);
    const auto spread = graph.pointwise(
        node.name + "/deviation", "v = x1 - x0 * x0; c = v < 0 ? 0 : v; y0 = rsqrt(c + p0); y1 = c",
        {rest, square}, {node.attrs.number("eps")});
    std::vector<ValueId> inputs{x, shift, rest, spread[0]};
    std::string code = "y0 = (x0 - x1 - x2) * x3";
    if (node.inputs.size() == 3) {
        inputs.push_back(graph.reshape(node.name + "/scale", node.inputs[1], per_channel));
        inputs.push_back(graph.reshape(node.name + "/offset", node.inputs[2], per_channel));
        code = "y0 = (x0 - x1 - x2) * (x3 * x4) + x5";
    }
    outputs = {graph.pointwise1(node.name, code, inputs), shift, rest, spread[0], spread[1]};
    return true;
}

}  // namespace dlprim::batchnorm
