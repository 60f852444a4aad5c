// SPDX-License-Identifier: MIT
// Elementwise: options, shape rule, gradient, lowering to Pointwise.
#include "ops/elementwise/operator.hpp"

#include "engine/activations.hpp"
#include "graph/lowering.hpp"
#include "ops/elementwise/options.hpp"

namespace dlprim::elementwise {

const Schema& Elementwise::schema() const {
    static const Schema schema{
        {"operation", OptionKind::text, std::string("sum"), "sum, prod or max"},
        {"coef1", OptionKind::number, 1.0, "factor of the first tensor"},
        {"coef2", OptionKind::number, 1.0, "factor of the second tensor"},
        {"activation", OptionKind::text, std::string("identity"), "applied to the result"}};
    return schema;
}

std::vector<TensorSpec> Elementwise::infer(const Attrs& attrs,
                                           std::span<const TensorSpec> inputs) const {
    find_activation(Options(attrs).activation);
    require(inputs[0].dtype == inputs[1].dtype, "inputs have dtypes ", name_of(inputs[0].dtype),
            " and ", name_of(inputs[1].dtype), "; a Cast makes them the same");
    require(is_float(inputs[0].dtype), "inputs have dtype ", name_of(inputs[0].dtype),
            ", a float type is needed");
    return {{broadcast(inputs[0].shape, inputs[1].shape), inputs[0].dtype}};
}

bool Elementwise::expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const Options options(node.attrs);
    if (options.activation == "identity") return false;
    Attrs attrs = node.attrs;
    attrs.set("activation", std::string("identity"));
    const ValueId sum = graph.add1("Elementwise", node.name, node.inputs, attrs);
    graph.nodes.back().name = node.name;
    outputs = graph.add("Activation", node.name + "/activation", {sum},
                        Attrs{{"activation", options.activation}});
    return true;
}

std::optional<EpilogueStage> Elementwise::as_epilogue(const Attrs& attrs) const {
    const Options options(attrs);
    if (options.operation != Operation::sum || options.coef1 != 1 || options.coef2 != 1)
        return std::nullopt;
    EpilogueStage stage;
    stage.kind = EpilogueStage::Kind::add;
    return stage;
}

void Elementwise::gradient(GradientContext& context) const {
    Graph& graph = context.graph;
    const Node& node = context.node;
    const Options options(node.attrs);
    const ValueId dy = context.output_gradients[0];
    const Shape full = graph.shape(node.outputs[0]);
    for (std::size_t i = 0; i < 2; ++i) {
        if (!context.wanted[i]) continue;
        const Shape part = graph.shape(node.inputs[i]);
        const ValueId self = node.inputs[i], other = node.inputs[1 - i];
        const double own = i == 0 ? options.coef1 : options.coef2;
        const double others = i == 0 ? options.coef2 : options.coef1;
        const std::string at = cat(node.name, "/backward", i + 1);
        ValueId& dx = context.input_gradients[i];
        switch (options.operation) {
            case Operation::sum:
                if (own == 1 && part == full)
                    dx = dy;
                else if (own == 1)
                    dx = pointwise_summed_to(graph, at, "x0", {dy}, {}, full, part);
                else
                    dx = pointwise_summed_to(graph, at, "x0 * p0", {dy}, {own}, full, part);
                break;
            case Operation::prod:
                dx = own * others == 1
                         ? pointwise_summed_to(graph, at, "x0 * x1", {dy, other}, {}, full, part)
                         : pointwise_summed_to(graph, at, "x0 * x1 * p0", {dy, other},
                                               {own * others}, full, part);
                break;
            case Operation::max:
                // At ties each input gets half of the gradient, as in torch.maximum.
                dx = pointwise_summed_to(
                    graph, at,
                    "x1 * p0 > x2 * p1 ? x0 * p0 : x1 * p0 == x2 * p1 ? x0 * p0 * 0.5 : 0",
                    {dy, self, other}, {own, others}, full, part);
                break;
        }
    }
}

bool Elementwise::lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const Options options(node.attrs);
    const std::string a = options.coef1 == 1 ? "x0" : "x0 * p0";
    const std::string b = options.coef2 == 1 ? "x1" : "x1 * p1";
    std::string code;
    switch (options.operation) {
        case Operation::sum:
            code = "y0 = " + a + " + " + b;
            break;
        case Operation::prod:
            code = "y0 = " + a + " * (" + b + ")";
            break;
        case Operation::max:
            code = "y0 = max(" + a + ", " + b + ")";
            break;
    }
    outputs = {graph.pointwise1(node.name, code, node.inputs,
                                scalars_of(code, {options.coef1, options.coef2}))};
    return true;
}

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<Elementwise>();
}

}  // namespace dlprim::elementwise
