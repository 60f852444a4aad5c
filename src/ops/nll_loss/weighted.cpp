// SPDX-License-Identifier: MIT
// NLLLoss where labels have weights: those of their classes, or 0 for the label that is ignored.
#include "graph/lowering.hpp"
#include "ops/nll_loss/operator.hpp"

namespace dlprim::nll_loss {

std::vector<ValueId> spread_labels(Graph& graph, const std::string& at, const Options& options,
                                   ValueId label, ValueId weight) {
    std::vector<ValueId> values{graph.reshape(at + "/label", label, options.label_kept)};
    if (weight != no_value)
        values.push_back(
            graph.reshape(at + "/weight", weight,
                          channel_shape(graph.shape(weight)[0], options.label_kept.rank())));
    return values;
}

std::string at_labels(const Options& options, const std::string& value) {
    const bool all = options.ignore_index == Options::no_label;
    return cat("index(1) == x1", all ? "" : " && x1 != p0", " ? ", value, " : 0");
}

namespace {

/// Programs read the input as x0, the labels as x1 and the classes' weights as x2.
std::vector<ValueId> operands(Graph& graph, const Node& node, const Options& options) {
    std::vector<ValueId> inputs{node.inputs[0]};
    const ValueId weight = node.inputs.size() > 2 ? node.inputs[2] : no_value;
    for (const ValueId value : spread_labels(graph, node.name, options, node.inputs[1], weight))
        inputs.push_back(value);
    return inputs;
}

}  // namespace

ValueId total_weight(Graph& graph, const Node& node, const Options& options) {
    const std::vector<ValueId> inputs = operands(graph, node, options);
    const std::string code =
        "y0 = sum[](" + at_labels(options, inputs.size() > 2 ? "x2" : "1") + ")";
    const Doubles ignored{static_cast<double>(options.ignore_index)};
    // The input gives the program its shape and its type.
    const ValueId total =
        graph.pointwise1(node.name + "/total", code, inputs, scalars_of(code, ignored));
    return graph.reshape(node.name + "/total_shape", total, Shape{1});
}

std::vector<ValueId> weighted(Graph& graph, const Node& node, const Options& options) {
    const std::vector<ValueId> inputs = operands(graph, node, options);
    const std::string over = options.reduce == Reduce::none ? "[1]" : "[]";
    const std::string code =
        cat("y0 = sum", over, "(", at_labels(options, inputs.size() > 2 ? "-x0 * x2" : "-x0"), ")");
    const Doubles ignored{static_cast<double>(options.ignore_index)};
    ValueId loss = graph.pointwise1(node.name, code, inputs, scalars_of(code, ignored));
    loss = graph.reshape(node.name + "/shape", loss, options.output());
    std::vector<ValueId> outputs{loss};
    if (options.reduce != Reduce::mean && !options.return_weight) return outputs;
    const ValueId total = total_weight(graph, node, options);
    if (options.reduce == Reduce::mean)
        outputs[0] = graph.pointwise1(node.name + "/mean", "y0 = x0 / x1", {loss, total});
    if (options.return_weight) outputs.push_back(total);
    return outputs;
}

}  // namespace dlprim::nll_loss
