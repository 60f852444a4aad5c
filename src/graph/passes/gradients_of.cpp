// SPDX-License-Identifier: MIT
// add_gradients: differentiates a graph of one node, and moves the nodes that make the gradients to
// another graph.
#include "graph/passes/gradients_of.hpp"

#include "base/text.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"

#include <algorithm>
#include <map>

namespace dlprim {

namespace {

/// A graph of one node, differentiated.
struct Alone {
    Graph graph;
    std::vector<ValueId> inputs;
    ValueId dy = no_value;
};

Alone differentiated(const Graph& from, std::string_view type, std::string_view name,
                     const Attrs& attrs, const std::vector<ValueId>& inputs,
                     std::span<const std::int64_t> wanted) {
    Alone alone;
    Graph& graph = alone.graph;
    graph.training = from.training;
    DifferentiateOptions how;
    how.input_gradients = how.seeds_are_inputs = true;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        Value value;
        value.name = cat("input ", i);
        value.spec = from.spec(inputs[i]);
        value.role = Role::input;
        alone.inputs.push_back(graph.add_value(std::move(value)));
        const auto is_wanted = std::find(wanted.begin(), wanted.end(), i) != wanted.end();
        if (!is_wanted) how.unwanted.push_back(alone.inputs.back());
    }
    graph.inputs = alone.inputs;
    graph.outputs.emplace_back(graph.add(type, name, alone.inputs, attrs)[0], "output");
    expand_composites(graph);
    differentiate(graph, how);
    alone.dy = graph.inputs.back();
    graph.outputs.clear();
    graph.assignments.clear();
    graph.remove_dead();
    return alone;
}

}  // namespace

std::vector<ValueId> add_gradients(Graph& graph, std::string_view type, std::string_view name,
                                   const Attrs& attrs, const std::vector<ValueId>& inputs,
                                   ValueId dy, std::span<const std::int64_t> wanted) {
    for (const std::int64_t input : wanted)
        require(input >= 0 && input < static_cast<std::int64_t>(inputs.size()) &&
                    is_float(graph.spec(inputs[static_cast<std::size_t>(input)]).dtype),
                "has no gradient of input ", input);
    const Alone alone = differentiated(graph, type, name, attrs, inputs, wanted);
    const TensorSpec &made = alone.graph.spec(alone.dy), &given = graph.spec(dy);
    require(made == given, "the gradient of the output is ", name_of(given.dtype), ' ', given.shape,
            ", must be ", name_of(made.dtype), ' ', made.shape);
    std::map<ValueId, ValueId> moved{{alone.dy, dy}};
    for (std::size_t i = 0; i < inputs.size(); ++i) moved[alone.inputs[i]] = inputs[i];
    const auto place = [&](ValueId id) {
        const auto [found, is_new] = moved.try_emplace(id, no_value);
        const Value& value = alone.graph.value(id);
        if (is_new)
            found->second = value.role == Role::scalar ? graph.scalar(value.name, value.spec.dtype)
                                                       : graph.add_value(value);  // a constant
        return found->second;
    };
    for (const Node& node : alone.graph.nodes) {
        std::vector<ValueId> operands;
        for (const ValueId id : node.inputs) operands.push_back(place(id));
        const std::vector<ValueId> results =
            graph.add(node.op->type(), node.name, std::move(operands), node.attrs);
        for (std::size_t i = 0; i < results.size(); ++i) moved[node.outputs[i]] = results[i];
    }
    std::vector<ValueId> gradients;
    for (const std::int64_t input : wanted)
        gradients.push_back(
            place(alone.graph.gradients.at(alone.inputs[static_cast<std::size_t>(input)])));
    return gradients;
}

}  // namespace dlprim
