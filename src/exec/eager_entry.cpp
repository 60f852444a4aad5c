// SPDX-License-Identifier: MIT
// make_eager_entry: a graph of one node, or of its gradient, and its plan.
#include "exec/eager_entry.hpp"

#include "base/text.hpp"
#include "graph/operator.hpp"
#include "graph/passes/pipeline.hpp"
#include "plan/make_plan.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

namespace {

ValueId add_operand(Graph& graph, const std::string& name, const Tensor& tensor, Role role,
                    bool trainable) {
    Value value;
    value.name = name;
    value.spec = {tensor.shape(), tensor.dtype()};
    value.role = role;
    value.trainable = trainable && is_float(tensor.dtype());
    const ValueId id = graph.add_value(std::move(value));
    if (role == Role::input) graph.inputs.push_back(id);
    return id;
}

/// The parameters that the operator declares. Checks those of the call against them.
std::vector<ParamSpec> checked_params(const Operator& op, const Attrs& attrs,
                                      const EagerCall& call) {
    std::vector<TensorSpec> specs;
    for (const Tensor& tensor : call.inputs) specs.push_back({tensor.shape(), tensor.dtype()});
    std::vector<ParamSpec> wanted = op.params(attrs, specs);
    require(wanted.size() == call.params.size(), call.type, " takes ", wanted.size(),
            " parameters, got ", call.params.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
        check_operand(call, "parameter", i, call.params[i], wanted[i].spec);
    return wanted;
}

}  // namespace

bool has_out(const EagerCall& call) {
    return std::any_of(call.how.out.begin(), call.how.out.end(),
                       [](const Tensor& tensor) { return tensor.defined(); });
}

void check_operand(const EagerCall& call, const char* what, std::size_t index, const Tensor& tensor,
                   const TensorSpec& wanted) {
    if (tensor.shape() == wanted.shape && tensor.dtype() == wanted.dtype) return;
    fail(ErrorKind::invalid_argument, call.type, ": ", what, ' ', index, " is ",
         name_of(tensor.dtype()), ' ', tensor.shape().str(), ", wants ", name_of(wanted.dtype), ' ',
         wanted.shape.str());
}

void check_gradients(const EagerCall& call, const std::vector<TensorSpec>& wanted) {
    if (!call.backward) return;
    require(call.output_gradients.size() == wanted.size(), call.type, " takes the gradients of ",
            wanted.size(), " outputs, got ", call.output_gradients.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
        check_operand(call, "output gradient", i, call.output_gradients[i], wanted[i]);
}

std::unique_ptr<EagerEntry> make_eager_entry(const Context& context, const EagerCall& call,
                                             std::span<const EagerOperand> operands,
                                             BlockStore& store) {
    const Operator& op = OperatorRegistry::instance().get(call.type);
    const auto count = static_cast<int>(call.inputs.size());
    require(count >= op.min_inputs() && count <= op.max_inputs(), call.type, " got ", count,
            " inputs, takes ", op.min_inputs(), " to ", op.max_inputs());
    const Attrs attrs = op.schema().complete(call.options.attrs, cat("[", call.type, "] "));
    const std::vector<ParamSpec> params = checked_params(op, attrs, call);

    Graph graph;
    graph.training = call.how.training;
    graph.precision = call.how.precision;
    std::vector<ValueId> values;
    for (std::size_t i = 0; i < call.inputs.size(); ++i)
        values.push_back(add_operand(graph, cat("input ", i), call.inputs[i], Role::input, false));
    for (std::size_t i = 0; i < call.params.size(); ++i)
        values.push_back(add_operand(graph, cat("parameter ", i), call.params[i], Role::parameter,
                                     params[i].trainable));
    const std::size_t given = values.size();
    const std::vector<ValueId> made = graph.add(call.type, call.type, values, attrs);
    graph.nodes.back().engine = call.backward ? "" : call.how.engine;
    for (std::size_t i = 0; i < made.size(); ++i)
        graph.outputs.emplace_back(made[i], cat("output ", i));

    auto entry = std::make_unique<EagerEntry>();
    DeriveOptions derive_options;
    if (call.backward)
        derive_options.gradients = {.input_gradients = true, .seeds_are_inputs = true};
    derive(graph, derive_options);
    if (call.backward) {
        graph.outputs.clear();
        graph.assignments.clear();
        graph.remove_dead();
        for (const ValueId id : graph.inputs) {
            if (std::find(values.begin(), values.end(), id) != values.end()) continue;
            values.push_back(id);
            entry->gradients.push_back(graph.spec(id));
        }
        check_gradients(call, entry->gradients);
    }

    PlanOptions options;
    options.bind_params_from = 0;
    options.engines = call.how.engines;
    options.free_outputs = !has_out(call);
    for (std::size_t i = 0; i < values.size(); ++i)
        if (operands[i].layout != nullptr) options.input_layouts[values[i]] = *operands[i].layout;
    entry->executor =
        std::make_unique<Executor>(context, make_plan(context, graph, options), store, true);

    const Plan& plan = entry->executor->plan();
    entry->results.resize(call.backward ? given : made.size());
    std::size_t next_output = 0;
    for (const External& external : plan.externals) {
        const auto operand = static_cast<std::size_t>(
            std::find(values.begin(), values.end(), external.value) - values.begin());
        EagerEntry::Binding binding{false, operand};
        if (external.kind == External::Kind::output) binding = {true, next_output++};
        if (external.kind == External::Kind::gradient) binding.result = true;
        if (binding.result)
            entry->results[binding.index] = {plan.graph.spec(external.value), external.layout};
        entry->bindings.push_back(binding);
    }
    for (const Block& block : plan.blocks)
        entry->uses_scalars = entry->uses_scalars || block.name == "scalars";
    return entry;
}

}  // namespace dlprim
