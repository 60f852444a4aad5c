// SPDX-License-Identifier: MIT
// BatchNorm: options, parameters, shape rule; and for running statistics, the gradient and the
// lowering to Pointwise.
#include "ops/batchnorm/operator.hpp"

#include "graph/lowering.hpp"

namespace dlprim::batchnorm {

namespace {

std::int64_t channels_of(const ops::BatchNorm& options, const TensorSpec& x) {
    require(x.shape.rank() >= 2, "input of shape ", x.shape,
            " has no channels: [N, C, ...] is needed");
    require(is_float(x.dtype), "input has dtype ", name_of(x.dtype), ", a float type is needed");
    require(options.features == -1 || options.features == x.shape[1], "input of shape ", x.shape,
            " has ", x.shape[1], " channels, features is ", options.features);
    return x.shape[1];
}

/// The value of the parameter after the assignments so far, because two operators may share it.
ValueId latest(const Graph& graph, ValueId parameter) {
    ValueId value = parameter;
    for (const Assignment& assignment : graph.assignments)
        if (assignment.target == parameter) value = assignment.source;
    return value;
}

void assign(Graph& graph, ValueId target, ValueId source) {
    for (Assignment& assignment : graph.assignments) {
        if (assignment.target == target) {
            assignment.source = source;
            return;
        }
    }
    graph.assignments.push_back({target, source});
}

/// scale / sqrt(variance + eps), of shape [1, C, 1, ...].
ValueId factor(Graph& graph, const Node& node, int rank) {
    const auto options = read<ops::BatchNorm>(node.attrs);
    const ValueId variance = node.inputs[2];
    const std::string at = node.name + "/factor";
    const ValueId k = options.affine
                          ? graph.pointwise1(at, "y0 = x1 * rsqrt(x0 + p0)",
                                             {variance, node.inputs[3]}, {options.eps})
                          : graph.pointwise1(at, "y0 = rsqrt(x0 + p0)", {variance}, {options.eps});
    return graph.reshape(at + "/shape", k, channel_shape(graph.shape(variance)[0], rank));
}

}  // namespace

DType statistic_type(DType x) {
    return x == DType::f64 ? DType::f64 : DType::f32;
}

std::vector<ParamSpec> BatchNorm::params(const Attrs& attrs,
                                         std::span<const TensorSpec> inputs) const {
    const auto options = read<ops::BatchNorm>(attrs);
    const TensorSpec spec{Shape{channels_of(options, inputs[0])}, inputs[0].dtype};
    std::vector<ParamSpec> result{{spec, Init::constant(0), false},
                                  {spec, Init::constant(1), false}};
    if (options.affine) {
        result.push_back({spec, Init::constant(1), true});
        result.push_back({spec, Init::constant(0), true});
    }
    return result;
}

std::vector<std::size_t> BatchNorm::written_params(const Attrs& attrs) const {
    return attrs.boolean("use_global_stats") ? std::vector<std::size_t>{}
                                             : std::vector<std::size_t>{0, 1};
}

std::vector<TensorSpec> BatchNorm::infer(const Attrs& attrs,
                                         std::span<const TensorSpec> inputs) const {
    const auto options = read<ops::BatchNorm>(attrs);
    const std::int64_t channels = channels_of(options, inputs[0]);
    const std::size_t wanted = options.affine ? 5 : 3;
    require(inputs.size() == wanted, "has ", inputs.size() - 1, " parameters, ", wanted - 1,
            " are needed");
    for (std::size_t i = 1; i < inputs.size(); ++i)
        require(inputs[i].shape == Shape{channels}, "parameter ", i - 1, " has shape ",
                inputs[i].shape, ", the input of shape ", inputs[0].shape, " needs ",
                Shape{channels});
    if (!options.return_statistics) return {inputs[0]};
    const TensorSpec statistic{Shape{channels}, statistic_type(inputs[0].dtype)};
    return {inputs[0], statistic, statistic};
}

bool BatchNorm::expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const auto options = read<ops::BatchNorm>(node.attrs);
    if (!graph.training || node.frozen || options.use_global_stats) return false;
    const Shape shape = graph.shape(node.inputs[0]);
    const std::int64_t channels = shape[1];
    const std::int64_t count = channels == 0 ? 0 : shape.numel() / channels;
    const int shards = options.sync ? graph.shards : 1;
    require(count * shards > 1, "[BatchNorm '", node.name,
            "'] training needs more than one value per channel, the input is ", shape,
            "; a larger batch or frozen: true helps");
    std::vector<ValueId> inputs{node.inputs[0], latest(graph, node.inputs[1]),
                                latest(graph, node.inputs[2])};
    inputs.insert(inputs.end(), node.inputs.begin() + 3, node.inputs.end());
    const std::vector<ValueId> made =
        graph.add("BatchNormTraining", node.name, inputs,
                  Attrs{{"eps", options.eps},
                        {"momentum", options.momentum},
                        {"shards", static_cast<std::int64_t>(shards)}});
    graph.nodes.back().name = node.name;
    assign(graph, node.inputs[1], made[5]);
    assign(graph, node.inputs[2], made[6]);
    outputs = {made[0]};
    if (!options.return_statistics) return true;
    const ValueId mean = graph.pointwise1(node.name + "/mean", "y0 = x0 + x1", {made[1], made[2]});
    for (const ValueId statistic : {mean, made[3]})
        outputs.push_back(graph.reshape(node.name + "/statistic", statistic, Shape{channels}));
    return true;
}

void BatchNorm::gradient(GradientContext& context) const {
    Graph& graph = context.graph;
    const Node& node = context.node;
    const auto options = read<ops::BatchNorm>(node.attrs);
    const ValueId dy = context.output_gradients[0], x = node.inputs[0];
    if (dy == no_value) return;  // statistics that are outputs have no gradient
    const Shape shape = graph.shape(x);
    const std::string at = node.name + "/backward";
    if (context.wanted[0])
        context.input_gradients[0] =
            graph.pointwise1(at, "y0 = x0 * x1", {dy, factor(graph, node, shape.rank())});
    if (!options.affine || (!context.wanted[3] && !context.wanted[4])) return;
    const Shape per_channel = channel_shape(shape[1], shape.rank());
    const ValueId mean = graph.reshape(at + "/mean", node.inputs[1], per_channel);
    const ValueId variance = graph.reshape(at + "/variance", node.inputs[2], per_channel);
    const std::string over = axes_text(axes_but(shape.rank(), 1));
    const auto sums = graph.pointwise(
        at + "/sums",
        "y0 = sum" + over + "(x0 * (x1 - x2) * rsqrt(x3 + p0)); y1 = sum" + over + "(x0)",
        {dy, x, mean, variance}, {options.eps});
    context.input_gradients[3] = graph.reshape(at + "/scale", sums[0], Shape{shape[1]});
    context.input_gradients[4] = graph.reshape(at + "/offset", sums[1], Shape{shape[1]});
}

bool BatchNorm::lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const ValueId x = node.inputs[0];
    const Shape shape = graph.shape(x);
    const Shape per_channel = channel_shape(shape[1], shape.rank());
    std::vector<ValueId> inputs{x, graph.reshape(node.name + "/mean", node.inputs[1], per_channel),
                                factor(graph, node, shape.rank())};
    std::string code = "y0 = (x0 - x1) * x2";
    if (node.inputs.size() == 5) {
        inputs.push_back(graph.reshape(node.name + "/offset", node.inputs[4], per_channel));
        code += " + x3";
    }
    outputs = {graph.pointwise1(node.name, code, inputs)};
    if (const auto options = read<ops::BatchNorm>(node.attrs); options.return_statistics) {
        const auto made = graph.pointwise(node.name + "/statistics", "y0 = x0; y1 = rsqrt(x1 + p0)",
                                          {node.inputs[1], node.inputs[2]}, {options.eps});
        outputs.insert(outputs.end(), made.begin(), made.end());
    }
    return true;
}

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<BatchNorm>();
}

}  // namespace dlprim::batchnorm
