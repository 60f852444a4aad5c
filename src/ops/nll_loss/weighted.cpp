// SPDX-License-Identifier: MIT
// NLLLoss where labels have weights: those of their classes, or 0 for the label that is ignored.
// What the labels name is gathered, so that the input is not read as a whole, and a label that is
// no class is refused as an index.
#include "graph/lowering.hpp"
#include "ops/nll_loss/operator.hpp"

namespace dlprim::nll_loss {

namespace {

/// The values that a node's labels name, all of shape [N, 1, ...].
class Named {
  public:
    Named(Graph& graph, const Node& node, const Options& options, const std::string& at)
        : graph_(graph), node_(node), options_(options), at_(at) {
        label_ = graph.reshape(at + "/label", node.inputs[1], options.label_kept);
    }

    ValueId label() const { return label_; }
    ValueId input() {
        return graph_.add1(
            "Gather", at_ + "/named", {node_.inputs[0], index()},
            Attrs{
                {"mode", std::string("elements")}, {"dim", std::int64_t{1}}, {"from_end", false}});
    }
    bool has_weight() const { return node_.inputs.size() > 2; }
    ValueId weight() {
        return graph_.add1("Gather", at_ + "/weight", {node_.inputs[2], index()},
                           Attrs{{"from_end", false}});
    }
    /// The expression where the label counts, and 0 where it is ignored. `x`: the label's operand.
    std::string counted(const std::string& x, const std::string& value) const {
        if (options_.ignore_index == Options::no_label) return value;
        return cat(x, " != ", options_.ignore_index, " ? ", value, " : 0");
    }

  private:
    /// Labels as indices: an ignored one names the first class.
    ValueId index() {
        if (index_ != no_value) return index_;
        const bool all = options_.ignore_index == Options::no_label;
        const DType given = graph_.spec(label_).dtype;
        const DType dtype = given == DType::i32 ? given : DType::i64;
        if (all && given == dtype) return index_ = label_;
        const std::string code =
            all ? "y0 = x0" : cat("y0 = x0 == ", options_.ignore_index, " ? 0 : x0");
        index_ =
            graph_.add1("Pointwise", at_ + "/class", {label_},
                        Attrs{{"code", code}, {"dtypes", Strings{std::string(name_of(dtype))}}});
        return index_;
    }

    Graph& graph_;
    const Node& node_;
    const Options& options_;
    const std::string at_;
    ValueId label_, index_ = no_value;
};

/// What each label counts. `x`, `weight`: the operands of the label and of its class's weight.
std::string weight_of(const Named& named, const std::string& x, const std::string& weight) {
    return named.counted(x, named.has_weight() ? weight : "1");
}

}  // namespace

ValueId total_weight(Graph& graph, const Node& node, const Options& options) {
    const std::string at = node.name + "/total";
    Named named(graph, node, options, at);
    std::vector<ValueId> inputs{named.label()};
    if (named.has_weight()) inputs.push_back(named.weight());
    const std::string code = "y0 = sum[](" + weight_of(named, "x0", "x1") + ")";
    const std::string_view dtype = name_of(graph.spec(node.inputs[0]).dtype);
    const ValueId total = graph.add1(
        "Pointwise", at, inputs, Attrs{{"code", code}, {"dtypes", Strings{std::string(dtype)}}});
    return graph.reshape(at + "_shape", total, Shape{1});
}

std::vector<ValueId> weighted(Graph& graph, const Node& node, const Options& options) {
    Named named(graph, node, options, node.name);
    std::vector<ValueId> inputs{named.input(), named.label()};
    if (named.has_weight()) inputs.push_back(named.weight());
    const std::string value = named.counted("x1", named.has_weight() ? "-x0 * x2" : "-x0");
    const bool totals = options.reduce == Reduce::mean || options.return_weight;
    if (options.reduce == Reduce::none) {
        std::vector<ValueId> outputs{
            graph.reshape(node.name + "/shape",
                          graph.pointwise1(node.name, "y0 = " + value, inputs), options.output())};
        if (totals) outputs.push_back(total_weight(graph, node, options));
        return outputs;
    }
    std::string code = "y0 = sum[](" + value + ")";
    if (totals) code += "; y1 = sum[](" + weight_of(named, "x1", "x2") + ")";
    std::vector<ValueId> outputs = graph.add("Pointwise", node.name, inputs, Attrs{{"code", code}});
    for (ValueId& output : outputs)
        output = graph.reshape(node.name + "/shape", output, options.output());
    if (options.reduce == Reduce::mean)
        outputs[0] = graph.pointwise1(node.name + "/mean", "y0 = x0 / x1", outputs);
    outputs.resize(options.return_weight ? 2 : 1);
    return outputs;
}

}  // namespace dlprim::nll_loss
