// SPDX-License-Identifier: MIT
// AttentionForward: what Attention becomes. Engines compute it without writing scores to memory;
// else it is a composite of MatMul, Pointwise, Softmax and Dropout. Its gradient is
// AttentionBackward, for which it makes the logarithm of each row's sum of exponentials (Dao 2022).
#include "base/text.hpp"
#include "graph/sum_to_shape.hpp"
#include "ops/attention/composite.hpp"
#include "ops/attention/heads.hpp"
#include "ops/attention/operator.hpp"

#include <algorithm>
#include <array>

namespace dlprim::attention {

namespace {

/// Options are Attention's; the type differs.
struct ForwardOptions : ops::Attention {
    static constexpr std::string_view type = forward_type;
};

const dlprim::Operator& attention() {
    return OperatorRegistry::instance().get(ops::Attention::type);
}

bool has_lengths(const Graph& graph, const Node& node) {
    return operands_among(node.attrs, node.inputs.size()) > 3 &&
           are_lengths(graph.spec(node.inputs[3]).dtype);
}

bool is_read(const Graph& graph, ValueId value) {
    const auto is_output = [&](const auto& output) { return output.first == value; };
    if (std::any_of(graph.outputs.begin(), graph.outputs.end(), is_output)) return true;
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
        return !node.removed &&
               std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end();
    });
}

class Forward : public InternalOperator<ForwardOptions, IndexedOperator> {
  public:
    int min_inputs() const override { return 3; }
    int max_inputs() const override { return 6; }
    int outputs(const Attrs&) const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const std::size_t operands = operands_among(attrs, inputs.size());
        check_keys(inputs.subspan(operands));
        const TensorSpec y = attention().infer(attrs, inputs.first(operands))[0];
        return {y, {rows_shape(y.shape), DType::f32}};
    }
    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) const override {
        return attention().flops(attrs, inputs, outputs);
    }

    IndexInput index_input(const Attrs& attrs, std::span<const TensorSpec> inputs) const override {
        return lengths_input(attrs, inputs, 3);
    }

    bool may_stay_whole() const override { return true; }
    /// Sequences behind each other always stay whole: products of all queries and positions would
    /// take NaN of one sequence to the others.
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        if (has_lengths(graph, node)) return false;
        Composite parts(graph, node.name, node.attrs, node.inputs);
        const bool logarithms = is_read(graph, node.outputs[1]);
        const ValueId scores = parts.scores();
        ValueId weights =
            graph.add1("Softmax", node.name + "/softmax", {scores},
                       Attrs{{"axis", static_cast<std::int64_t>(graph.shape(scores).rank() - 1)}});
        weights = parts.dropped("dropout", parts.left(weights));
        const Shape rows = graph.shape(node.outputs[1]);
        outputs = {parts.values(weights, graph.shape(node.outputs[0])),
                   logarithms ? parts.logarithms(scores, rows) : no_value};
        return true;
    }

    void gradient(GradientContext& context) const override;
};

/// The sum of a gradient over what the operand was broadcast to, in the shape of the input.
ValueId summed(GradientContext& context, const std::string& name, ValueId gradient,
               const Shape& operand, std::size_t input) {
    Graph& graph = context.graph;
    const ValueId sum = sum_to_shape(graph, name + "/sum", gradient, operand);
    return graph.reshape(name + "/shape", sum, graph.shape(context.node.inputs[input]));
}

void Forward::gradient(GradientContext& context) const {
    const Node& node = context.node;
    const ValueId dy = context.output_gradients[0];
    if (dy == no_value) return;
    Graph& graph = context.graph;
    const std::string name = node.name + "/backward";
    const ValueId lse = node.outputs[1];
    const ValueId delta =
        graph.pointwise1(name + "/delta", "y0 = sum[-1](x0 * x1)", {dy, node.outputs[0]});
    std::vector<ValueId> inputs{node.inputs[0],
                                node.inputs[1],
                                node.inputs[2],
                                lse,
                                graph.reshape(name + "/rows", delta, graph.shape(lse)),
                                dy};
    std::vector<Shape> given;
    const std::size_t operands = operands_among(node.attrs, node.inputs.size());
    for (std::size_t i = 0; i < operands; ++i) given.push_back(graph.shape(node.inputs[i]));
    const std::vector<Shape> shapes = operand_shapes(node.attrs, given);
    inputs.insert(inputs.end(), node.inputs.begin() + 3, node.inputs.end());
    if (context.wanted[0] || context.wanted[1] || context.wanted[2]) {
        const std::vector<ValueId> made = graph.add(backward_type, name, inputs, node.attrs);
        constexpr std::array<const char*, 3> names{"/dq", "/dk", "/dv"};
        for (std::size_t i = 0; i < 3; ++i)
            if (context.wanted[i])
                context.input_gradients[i] =
                    summed(context, name + names[i], made[i], shapes[i], i);
    }
    // Engines do not make the mask's gradient, which is that of all scores.
    if (operands > 3 && context.wanted[3] && is_float(graph.spec(node.inputs[3]).dtype)) {
        const ValueId ds = Composite(graph, name + "/of_mask", node.attrs, node.inputs)
                               .gradients(lse, inputs[4], dy)
                               .scores;
        context.input_gradients[3] = summed(context, name + "/dmask", ds, shapes[3], 3);
    }
}

}  // namespace

std::unique_ptr<dlprim::Operator> make_forward() {
    return std::make_unique<Forward>();
}

}  // namespace dlprim::attention
