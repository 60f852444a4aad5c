// SPDX-License-Identifier: MIT
// make_eager_entry: a graph of one node, of its gradient or of a function, and its plan.
#include "exec/eager_entry.hpp"

#include "base/text.hpp"
#include "engine/pointwise/job.hpp"
#include "exec/eager_views.hpp"
#include "graph/description.hpp"
#include "graph/operator.hpp"
#include "graph/passes/pipeline.hpp"
#include "plan/whole_nodes.hpp"
#include "runtime/access.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
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

/// The spec, in the parameter's own float type if no input says which it is (Embedding's indices).
/// Parameters may be float where inputs have 16 bits, for operators that compute in float: batch
/// norms under automatic mixed precision.
TensorSpec of_the_callers_type(const EagerCall& call, const Tensor& param, TensorSpec spec,
                               FloatTypes takes) {
    if (has_16_bits(spec.dtype) && param.dtype() == DType::f32 && takes == FloatTypes::wide)
        spec.dtype = DType::f32;
    const bool any_float =
        std::any_of(call.inputs.begin(), call.inputs.end(),
                    [](const Tensor& tensor) { return is_float(tensor.dtype()); });
    if (!any_float && !call.inputs.empty() && is_float(spec.dtype) && is_float(param.dtype()))
        spec.dtype = param.dtype();
    return spec;
}

/// The parameters that the operator declares. Checks those of the call against them.
std::vector<ParamSpec> checked_params(const Operator& op, const Attrs& attrs,
                                      const EagerCall& call) {
    std::vector<TensorSpec> specs;
    for (const Tensor& tensor : call.inputs) specs.push_back({tensor.shape(), tensor.dtype()});
    std::vector<ParamSpec> wanted = op.params(attrs, specs);
    require(wanted.size() == call.params.size(), call.type, " takes ", wanted.size(),
            " parameters, got ", call.params.size());
    const FloatTypes takes = op.float_types(attrs);
    for (std::size_t i = 0; i < wanted.size(); ++i)
        check_operand(call, "parameter", i, call.params[i],
                      of_the_callers_type(call, call.params[i], wanted[i].spec, takes));
    return wanted;
}

/// The options that the call gives. A program's scalars that come with each call are not among
/// them: its node only says what they are (engine/pointwise/job.hpp).
Attrs options_of(const EagerCall& call, const Attrs& complete) {
    Attrs attrs = call.options.attrs;
    if (call.how.scalars.empty()) return attrs;
    require(complete.has("scalars"), call.type, " has no scalars, and the call gives ",
            call.how.scalars.size());
    require(complete.numbers("scalars").empty(), call.type,
            " got scalars as an option and beside the options; give them in one place");
    std::string kinds;
    for (const Scalar& scalar : call.how.scalars)
        kinds += std::holds_alternative<std::int64_t>(scalar) ? 'i' : 'd';
    attrs.set(pointwise::arguments_attr, std::move(kinds));
    return attrs;
}

/// Whether CallOptions::wanted asks for a result, of `count`.
bool is_wanted(const EagerCall& call, std::size_t result, std::size_t count) {
    const std::vector<bool>& wanted = call.how.wanted;
    require(wanted.empty() || wanted.size() == count, call.type, " has ", count,
            call.backward ? " inputs and parameters" : " outputs",
            ", and the list of wanted ones has ", wanted.size(), " elements");
    return wanted.empty() || wanted[result];
}

/// The steps of a plan that touch an external.
struct Touches {
    static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
    std::size_t first = never, last = never;
    bool in_setup = false;
};

std::vector<Touches> find_touches(const Plan& plan) {
    std::vector<Touches> found(plan.externals.size());
    const auto visit = [&](const Step& step, const auto& note) {
        for (const Place& place : step.operands)
            if (place.kind == Place::Kind::external)
                note(found.at(static_cast<std::size_t>(place.index)));
    };
    for (const Step& step : plan.setup) visit(step, [](Touches& its) { its.in_setup = true; });
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
        visit(plan.steps[i], [i](Touches& its) {
            if (its.first == Touches::never) its.first = i;
            its.last = i;
        });
    return found;
}

/// Whether a step writes each element of the external `result` after it has read the one at its
/// place of the external `operand`, wherever it reads that.
bool replaces(const Step& step, std::size_t result, std::size_t operand) {
    const auto is = [](const Place& place, std::size_t external) {
        return place.kind == Place::Kind::external && place.index == static_cast<int>(external);
    };
    for (std::size_t input = 0; input < step.operands.size(); ++input)
        if (is(step.operands[input], operand) &&
            std::none_of(step.in_place.begin(), step.in_place.end(), [&](const auto& pair) {
                return pair.second == input && is(step.operands[pair.first], result);
            }))
            return false;
    return true;
}

std::vector<TensorSpec> specs_of(const Graph& graph, const std::vector<ValueId>& values) {
    std::vector<TensorSpec> specs;
    specs.reserve(values.size());
    for (const ValueId id : values) specs.push_back(graph.spec(id));
    return specs;
}

bool writes(const EagerEntry& entry, std::size_t operand) {
    return std::find(entry.written.begin(), entry.written.end(), operand) != entry.written.end();
}

/// Whether no value is two outputs, which would have one layout.
bool are_distinct(const Graph& graph) {
    std::set<ValueId> values;
    return std::all_of(graph.outputs.begin(), graph.outputs.end(),
                       [&](const auto& output) { return values.insert(output.first).second; });
}

std::string output_name(std::size_t index) {
    return cat("output ", index);
}

/// The layouts of `out` tensors. Those that do not fit `specs` are refused before the plan runs.
void set_result_layouts(PlanOptions& options, const EagerCall& call,
                        const std::vector<ValueId>& operands,
                        const std::vector<TensorSpec>& specs) {
    for (std::size_t i = 0; i < std::min(specs.size(), call.how.out.size()); ++i) {
        const Tensor& out = call.how.out[i];
        if (!out.defined() || out.shape() != specs[i].shape) continue;
        if (call.backward)
            options.gradient_layouts[operands[i]] = layout_of(out);
        else
            options.output_layouts[output_name(i)] = layout_of(out);
    }
}

/// Finds the pairs for which the plan gives the same results where the result is the operand's
/// memory: one launch alone reads the operand, no launch before it touches the result, and it
/// writes each element after it has read the one at its place.
void find_in_place(EagerEntry& entry) {
    const Plan& plan = entry.call->plan();
    const std::vector<Touches> touches = find_touches(plan);
    for (std::size_t j = 0; j < entry.bindings.size(); ++j) {
        const Touches& read = touches[j];
        if (entry.bindings[j].result || read.in_setup || read.first != read.last) continue;
        for (std::size_t i = 0; i < entry.bindings.size(); ++i)
            if (entry.bindings[i].result &&
                (read.first == Touches::never ||
                 (touches[i].first >= read.first && replaces(plan.steps[read.first], i, j))))
                entry.in_place.emplace_back(entry.bindings[i].index, entry.bindings[j].index);
    }
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

namespace {

/// What a call computes, before it is derived and planned.
struct CallGraph {
    Graph graph;
    std::vector<ValueId> values;           ///< of inputs, then of parameters
    std::vector<TensorSpec> specs;         ///< of these
    std::vector<TensorSpec> result_specs;  ///< of the outputs, also of those that nobody wants
    std::vector<std::size_t> outputs;      ///< by output of the graph: the index of the result
};

/// A graph of one node.
CallGraph graph_of_operator(const EagerCall& call) {
    const Operator& op = OperatorRegistry::instance().get(call.type);
    const auto count = static_cast<int>(call.inputs.size());
    require(count >= op.min_inputs() && count <= op.max_inputs(), call.type, " got ", count,
            " inputs, takes ", op.min_inputs(), " to ", op.max_inputs());
    const Attrs attrs = OperatorRegistry::instance()
                            .complete(call.type, call.options.attrs, cat("[", call.type, "] "))
                            .attrs;
    const std::vector<ParamSpec> params = checked_params(op, attrs, call);

    CallGraph made;
    Graph& graph = made.graph;
    graph.training = call.how.training;
    graph.precision = call.how.precision;
    for (std::size_t i = 0; i < call.inputs.size(); ++i)
        made.values.push_back(
            add_operand(graph, cat("input ", i), call.inputs[i], Role::input, false));
    for (std::size_t i = 0; i < call.params.size(); ++i)
        made.values.push_back(add_operand(graph, cat("parameter ", i), call.params[i],
                                          Role::parameter, params[i].trainable));
    made.specs = specs_of(graph, made.values);
    const std::vector<ValueId> results =
        graph.add(call.type, call.type, made.values, options_of(call, attrs));
    graph.nodes.back().engine = call.backward ? "" : call.how.engine;
    made.result_specs = specs_of(graph, results);
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (!call.backward && !is_wanted(call, i, results.size())) continue;
        graph.outputs.emplace_back(results[i], output_name(i));
        made.outputs.push_back(i);
    }
    return made;
}

/// The graph of a function. Inputs that are constants become parameters.
CallGraph graph_of_function(const EagerCall& call) {
    const EagerFunction& function = *call.function;
    std::map<std::string, Shape> shapes;
    const auto take = [&](const NetDescription::Input& declared, const Tensor& given) {
        require(given.dtype() == declared.dtype, call.type, ": input '", declared.name, "' is ",
                name_of(given.dtype()), ", declared as ", name_of(declared.dtype));
        shapes[declared.name] = given.shape();
    };
    std::size_t input = 0, param = 0;
    for (const NetDescription::Input& declared : function.description.inputs)
        take(declared, function.constants.count(declared.name) > 0 ? call.params[param++]
                                                                   : call.inputs[input++]);
    CallGraph made;
    Graph& graph = made.graph;
    graph = build_graph(function.description, shapes, 0, call.how.training, call.how.precision);
    for (const ValueId id : std::exchange(graph.inputs, {}))
        if (function.constants.count(graph.value(id).name) > 0)
            graph.value(id).role = Role::parameter;
        else
            graph.inputs.push_back(id);
    made.values = graph.inputs;
    for (std::size_t i = 0; i < graph.values.size(); ++i)  // in the order of their declaration
        if (graph.values[i].role == Role::parameter) made.values.push_back(static_cast<ValueId>(i));
    made.specs = specs_of(graph, made.values);
    for (std::size_t i = param; i < call.params.size(); ++i)
        check_operand(call, "parameter", i - param, call.params[i],
                      made.specs.at(call.inputs.size() + i));
    graph.losses.clear();
    for (auto& [id, name] : graph.outputs) {
        name = output_name(made.outputs.size());
        made.outputs.push_back(made.outputs.size());
        made.result_specs.push_back(graph.spec(id));
    }
    return made;
}

}  // namespace

std::unique_ptr<EagerEntry> make_eager_entry(const Context& context, const EagerCall& call,
                                             std::span<const EagerOperand> operands,
                                             BlockStore& store, bool sketched) {
    CallGraph made = call.function != nullptr ? graph_of_function(call) : graph_of_operator(call);
    auto& [graph, values, specs, result_specs, outputs] = made;
    const std::size_t given = values.size();
    auto entry = std::make_unique<EagerEntry>();
    DeriveOptions derive_options;
    derive_options.engines = call.how.engines;
    if (call.backward) {
        derive_options.gradients = {.input_gradients = true, .seeds_are_inputs = true};
        for (std::size_t i = 0; i < given; ++i)
            if (!is_wanted(call, i, given)) derive_options.gradients->unwanted.push_back(values[i]);
    }
    WholeNodes whole(Access::impl(context), derive_options.gradients);
    derive_options.whole_pays = [&](const Graph& g, const Node& node) {
        return whole.pays(g, node);
    };
    derive(graph, derive_options);
    if (!call.backward)
        for (const Assignment& assignment : graph.assignments)
            entry->written.push_back(static_cast<std::size_t>(
                std::find(values.begin(), values.end(), assignment.target) - values.begin()));
    if (outputs.size() < result_specs.size()) graph.remove_dead();
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
    options.check_engines = EngineChecks::kinds;
    options.report = false;
    options.free_outputs = !has_out(call) || (call.function != nullptr && are_distinct(graph));
    for (std::size_t i = 0; i < values.size(); ++i)
        if (Layout layout = layout_of(operands[i]); !layout.is_plain() && !writes(*entry, i))
            options.input_layouts[values[i]] = std::move(layout);
    turn_matrices(graph, options.input_layouts);
    set_result_layouts(options, call, values, call.backward ? specs : result_specs);
    entry->call = std::make_unique<PlannedCall>(std::move(graph), std::move(options));
    if (sketched)
        entry->call->sketch(context);
    else
        entry->call->finish(context, store);

    const Plan& plan = entry->call->plan();
    entry->results.resize(call.backward ? given : result_specs.size());
    std::size_t next_output = 0;
    for (const External& external : plan.externals) {
        const auto operand = static_cast<std::size_t>(
            std::find(values.begin(), values.end(), external.value) - values.begin());
        EagerEntry::Binding binding{false, operand};
        if (external.kind == External::Kind::output) binding = {true, outputs[next_output++]};
        if (external.kind == External::Kind::gradient) binding.result = true;
        if (binding.result)  // a gradient's operand may be a matrix that was turned
            entry->results[binding.index] = {external.kind == External::Kind::gradient
                                                 ? specs[operand]
                                                 : plan.graph.spec(external.value),
                                             external.layout};
        entry->bindings.push_back(binding);
    }
    for (const Block& block : plan.blocks)
        entry->uses_scalars = entry->uses_scalars || block.name == "scalars";
    if (has_out(call)) find_in_place(*entry);
    return entry;
}

}  // namespace dlprim
