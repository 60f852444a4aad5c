// SPDX-License-Identifier: MIT
// Operators that are an expression: shape rule, gradient, lowering to Pointwise.
#include "ops/expressions/operator.hpp"

#include "graph/lowering.hpp"
#include "ops/expressions/binding.hpp"

namespace dlprim::expressions {

namespace {

/// The shape of the elements for which the expression is computed.
Shape whole_shape(const Row& row, std::span<const TensorSpec> inputs) {
    return row.inputs.size() == 1 ? inputs[0].shape : broadcast(inputs[0].shape, inputs[1].shape);
}

void check_count(const Row& row, std::int64_t count, const Shape& x) {
    const std::int64_t channels = x.rank() >= 2 ? x[1] : 1;
    require(count == 1 || (count == channels && x.rank() >= 2), row.parameter->count, " is ", count,
            ", the input of shape ", x, " needs 1 or its number of channels");
}

bool sums(const Row& row, const Attrs& attrs) {
    return row.reduced && attrs.text("reduce") != "none";
}

}  // namespace

std::vector<ParamSpec> ExpressionOperator::params(const Attrs& attrs,
                                                  std::span<const TensorSpec> inputs) const {
    if (!row_.parameter) return {};
    const std::int64_t count = attrs.integer(row_.parameter->count);
    check_count(row_, count, inputs[0].shape);
    const Init init = Init::constant(attrs.number(row_.parameter->init));
    return {{{Shape{count}, inputs[0].dtype}, init, true}};
}

void ExpressionOperator::check_shapes(std::span<const TensorSpec> inputs) const {
    const DType dtype = inputs[0].dtype;
    require(row_.integers || is_float(dtype), "input has dtype ", name_of(dtype),
            ", a float type is needed");
    if (row_.inputs.size() < 2) return;
    require(inputs[1].dtype == dtype, "inputs have dtypes ", name_of(dtype), " and ",
            name_of(inputs[1].dtype), "; a Cast makes them the same");
    require(!row_.same_shape || inputs[0].shape == inputs[1].shape, "inputs have shapes ",
            inputs[0].shape, " and ", inputs[1].shape, ", they should be the same");
}

std::vector<TensorSpec> ExpressionOperator::infer(const Attrs& attrs,
                                                  std::span<const TensorSpec> inputs) const {
    const Attrs resolved = row_.resolved(attrs);
    if (row_.check != nullptr) row_.check(resolved);
    row_.formula(resolved);
    check_shapes(inputs);
    if (row_.parameter) {
        const std::int64_t count = attrs.integer(row_.parameter->count);
        check_count(row_, count, inputs[0].shape);
        const std::string& name = row_.parameter->name;
        require(inputs.size() == 2, "has ", inputs.size() - 1, " parameters, one ", name,
                " is needed");
        require(inputs[1].shape == Shape{count}, name, " has shape ", inputs[1].shape, ", ",
                row_.parameter->count, " needs ", Shape{count});
    }
    const Shape whole = whole_shape(row_, inputs);
    return {{sums(row_, attrs) ? Shape{1} : whole, inputs[0].dtype}};
}

bool ExpressionOperator::expand(Graph& graph, const Node& node,
                                std::vector<ValueId>& outputs) const {
    Attrs attrs = row_.resolved(node.attrs);
    const bool activated = row_.activated && attrs.text("activation") != "identity";
    if (activated) attrs.set("activation", std::string("identity"));
    if (attrs.str() == node.attrs.str()) return false;
    outputs = graph.add(row_.type, node.name, node.inputs, attrs);
    graph.nodes.back().name = node.name;
    if (activated)
        outputs = graph.add("Activation", node.name + "/activation", {outputs[0]},
                            Attrs{{"activation", node.attrs.text("activation")}});
    return true;
}

std::vector<ValueId> ExpressionOperator::operands(Graph& graph, const Node& node,
                                                  const std::string& at) const {
    std::vector<ValueId> values = node.inputs;
    if (!row_.parameter) return values;
    const std::int64_t count = graph.shape(values[1])[0];
    if (count != 1)
        values[1] = graph.reshape(cat(at, "/", row_.parameter->name, "_shape"), values[1],
                                  channel_shape(count, graph.shape(values[0]).rank()));
    return values;
}

bool ExpressionOperator::lower(Graph& graph, const Node& node,
                               std::vector<ValueId>& outputs) const {
    const std::vector<ValueId> values = operands(graph, node, node.name);
    const Binding binding(row_, node.attrs, graph.shape(node.inputs[0]).numel());
    const pointwise::ExprPtr value = binding.value();
    if (value->kind == pointwise::Expr::Kind::input) {
        outputs = {values[static_cast<std::size_t>(value->number)]};
        return true;
    }
    const bool summed = sums(row_, node.attrs);
    const Ints axes = summed ? axes_but(graph.shape(node.inputs[0]).rank(), -1) : Ints{};
    const Code code = code_of(binding, std::span(&value, 1), axes);
    std::vector<ValueId> inputs;
    for (const int i : code.inputs) inputs.push_back(values[static_cast<std::size_t>(i)]);
    outputs = {graph.pointwise1(node.name, code.text, inputs, code.scalars)};
    if (summed) outputs[0] = graph.reshape(node.name + "/shape", outputs[0], Shape{1});
    return true;
}

void ExpressionOperator::gradient(GradientContext& context) const {
    Graph& graph = context.graph;
    const Node node = context.node;
    const std::string at = node.name + "/backward";
    const Binding binding(row_, node.attrs, graph.shape(node.inputs[0]).numel());
    std::vector<ValueId> values = operands(graph, node, at);
    const Shape full = row_.inputs.size() == 1
                           ? graph.shape(values[0])
                           : broadcast(graph.shape(values[0]), graph.shape(values[1]));
    values.insert(values.end(), {context.output_gradients[0], node.outputs[0]});
    const auto inputs_of = [&](const Code& code) {
        std::vector<ValueId> inputs;
        for (const int i : code.inputs) inputs.push_back(values[static_cast<std::size_t>(i)]);
        return inputs;
    };

    // Gradients of the full shape share a kernel, which reads their operands once.
    std::vector<pointwise::ExprPtr> together;
    std::vector<std::size_t> whose;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const pointwise::ExprPtr dx =
            context.wanted[i] ? binding.gradient(static_cast<int>(i)) : nullptr;
        if (!dx) continue;
        const Shape part = graph.shape(values[i]);
        if (part == full && dx->kind == pointwise::Expr::Kind::input) {
            context.input_gradients[i] = values[static_cast<std::size_t>(dx->number)];
        } else if (part == full) {
            together.push_back(dx);
            whose.push_back(i);
        } else {
            const std::string name =
                cat(at, "/", i < row_.inputs.size() ? row_.inputs[i] : row_.parameter->name);
            const Code code = code_of(binding, std::span(&dx, 1), broadcast_axes(part, full));
            const ValueId sum = graph.pointwise1(name, code.text, inputs_of(code), code.scalars);
            context.input_gradients[i] =
                graph.reshape(name + "/shape", sum, graph.shape(node.inputs[i]));
        }
    }
    if (together.empty()) return;
    const Code code = code_of(binding, together);
    const auto made = graph.pointwise(at, code.text, inputs_of(code), code.scalars);
    for (std::size_t k = 0; k < whose.size(); ++k) context.input_gradients[whose[k]] = made[k];
}

}  // namespace dlprim::expressions
