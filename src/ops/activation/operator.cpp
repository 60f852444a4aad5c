// SPDX-License-Identifier: MIT
// Activation: options, shape rule, gradient, lowering to Pointwise.
#include "ops/activation/operator.hpp"

#include "base/text.hpp"
#include "engine/pointwise/program.hpp"
#include "graph/lowering.hpp"
#include "ops/activation/options.hpp"

#include <limits>
#include <optional>

namespace dlprim::activation {

namespace {

/// The expression of the table, in x, alpha and beta, with the names of the pointwise language.
std::string pointwise_expression(const Activation& function) {
    std::string result, word;
    auto flush = [&] {
        result += word == "x" ? "x0" : word == "alpha" ? "p0" : word == "beta" ? "p1" : word;
        word.clear();
    };
    for (char c : function.expression) {
        if (ascii::is_word(c) || (c == '.' && !word.empty())) {
            word += c;
        } else {
            flush();
            result += c;
        }
    }
    flush();
    return result;
}

}  // namespace

std::optional<std::string> gradient_from_output(const std::string& name, double alpha) {
    if (name == "relu") return "x1 > 0 ? x0 : 0";
    if (name == "relu6") return "x1 > 0 && x1 < 6 ? x0 : 0";
    if (name == "sigmoid") return "x0 * x1 * (1 - x1)";
    if (name == "tanh") return "x0 * (1 - x1 * x1)";
    if (name == "leaky_relu" && alpha > 0) return "x1 > 0 ? x0 : x0 * p0";
    if (name == "elu" && alpha > 0) return "x1 > 0 ? x0 : x0 * (x1 + p0)";
    return std::nullopt;
}

const Schema& ActivationOperator::schema() const {
    constexpr double not_given = std::numeric_limits<double>::quiet_NaN();
    static const Schema schema{
        {"activation", OptionKind::text, std::string("identity"), "the function's name", true},
        {"alpha", OptionKind::number, not_given,
         "the function's first parameter (default: the function's)"},
        {"beta", OptionKind::number, not_given,
         "the function's second parameter (default: the function's)"},
        {"negative_slope", OptionKind::number, not_given, "alpha of leaky_relu"},
        {"min_val", OptionKind::number, not_given, "alpha of hardtanh"},
        {"max_val", OptionKind::number, not_given, "beta of hardtanh"},
        {"lambd", OptionKind::number, not_given, "alpha of softshrink and hardshrink"},
        {"threshold", OptionKind::number, not_given, "alpha of threshold, beta of softplus"},
        {"value", OptionKind::number, not_given, "beta of threshold"}};
    return schema;
}

std::vector<TensorSpec> ActivationOperator::infer(const Attrs& attrs,
                                                  std::span<const TensorSpec> inputs) const {
    const Options options(attrs);
    require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
            ", an activation needs a float type");
    return {inputs[0]};
}

bool ActivationOperator::expand(Graph& graph, const Node& node,
                                std::vector<ValueId>& outputs) const {
    const Options options(node.attrs);
    if (options.resolved) return false;
    outputs = graph.add("Activation", node.name, node.inputs,
                        Attrs{{"activation", options.function->name},
                              {"alpha", options.alpha},
                              {"beta", options.beta}});
    graph.nodes.back().name = node.name;
    return true;
}

std::optional<EpilogueStage> ActivationOperator::as_epilogue(const Attrs& attrs) const {
    EpilogueStage stage;
    stage.kind = EpilogueStage::Kind::activation;
    stage.activation = attrs.text("activation");
    stage.alpha = attrs.number("alpha");
    stage.beta = attrs.number("beta");
    return stage;
}

void ActivationOperator::gradient(GradientContext& context) const {
    const Node& node = context.node;
    const ValueId dy = context.output_gradients[0];
    const Options options(node.attrs);
    const std::string& name = options.function->name;
    if (name == "identity") {
        context.input_gradients[0] = dy;
        return;
    }
    const std::string at = node.name + "/backward";
    if (auto expression = gradient_from_output(name, options.alpha)) {
        context.input_gradients[0] =
            context.graph.pointwise1(at, "y0 = " + *expression, {dy, node.outputs[0]},
                                     scalars_of(*expression, {options.alpha}));
        return;
    }
    namespace pw = pointwise;
    const pw::Program program = pw::parse("y0 = " + pointwise_expression(*options.function));
    const pw::ExprPtr slope = pw::differentiate(program.outputs.at(0).value, 0);
    if (!slope) return;
    // In the gradient's program, dy is x0 and x is x1.
    const pw::ExprPtr moved = pw::substitute(slope, {pw::input(1)}, {});
    const pw::ExprPtr dx = pw::simplify(pw::call("mul", {pw::input(0), moved}));
    const std::string code = "y0 = " + pw::print(dx);
    context.input_gradients[0] = context.graph.pointwise1(
        at, code, {dy, node.inputs[0]}, scalars_of(code, {options.alpha, options.beta}));
}

bool ActivationOperator::lower(Graph& graph, const Node& node,
                               std::vector<ValueId>& outputs) const {
    const Options options(node.attrs);
    if (options.function->name == "identity") {
        outputs = {node.inputs[0]};
        return true;
    }
    const std::string code = "y0 = " + pointwise_expression(*options.function);
    outputs = {graph.pointwise1(node.name, code, {node.inputs[0]},
                                scalars_of(code, {options.alpha, options.beta}))};
    return true;
}

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<ActivationOperator>();
}

}  // namespace dlprim::activation
