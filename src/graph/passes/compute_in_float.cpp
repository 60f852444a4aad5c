// SPDX-License-Identifier: MIT
// compute_in_float: adds casts around operators that need float.
#include "graph/passes/compute_in_float.hpp"

#include "base/text.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"

#include <algorithm>

namespace dlprim {

namespace {

ValueId cast(Graph& graph, const std::string& name, ValueId value, DType dtype) {
    return graph.add1("Cast", name, {value}, Attrs{{"dtype", std::string(name_of(dtype))}});
}

}  // namespace

ValueId ComputeInFloat::widened(Graph& graph, const Node& node, ValueId value) {
    if (!has_16_bits(graph.spec(value).dtype)) return value;
    const auto [found, is_new] = casts_.try_emplace({node.part, value}, no_value);
    if (is_new)
        found->second =
            cast(graph, cat(node.name, "/", graph.value(value).name), value, DType::f32);
    return found->second;
}

bool ComputeInFloat::rewrite(Graph& graph, const Node& node, std::vector<ValueId>& outputs) {
    const FloatTypes takes = node.op->float_types(node.attrs);
    if (takes == FloatTypes::all || node.op->internal()) return false;
    const auto any = [&](auto&& is_so) {
        return std::any_of(node.inputs.begin(), node.inputs.end(),
                           [&](ValueId id) { return is_so(graph.spec(id).dtype); });
    };
    if (any(is_narrow))
        fail(ErrorKind::unsupported, "it does not compute with ",
             name_of(graph
                         .spec(*std::find_if(
                             node.inputs.begin(), node.inputs.end(),
                             [&](ValueId id) { return is_narrow(graph.spec(id).dtype); }))
                         .dtype),
             "; add a Cast before it");
    if (takes == FloatTypes::single && any([](DType dtype) { return dtype == DType::f64; }))
        fail(ErrorKind::unsupported,
             "it computes in float and its operands are double; add a Cast to float before it, or "
             "declare the network's inputs as float");
    if (!any(has_16_bits)) return false;

    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(widened(graph, node, id));
    outputs = graph.add(node.op->type(), node.name, inputs, node.attrs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const DType dtype = graph.spec(node.outputs[i]).dtype;
        if (graph.spec(outputs[i]).dtype != dtype)
            outputs[i] = cast(graph, cat(node.name, "/output ", i), outputs[i], dtype);
    }
    return true;
}

void ComputeInFloat::assign_parameters(Graph& graph) {
    for (std::size_t i = 0; i < graph.assignments.size(); ++i) {
        const auto [target, source] = graph.assignments[i];
        const NodeId producer = graph.value(target).producer;
        if (producer < 0) continue;
        const ValueId parameter = graph.nodes[static_cast<std::size_t>(producer)].inputs.at(0);
        const std::string name = graph.value(parameter).name + "/updated";
        graph.assignments[i] = {parameter, cast(graph, name, source, graph.spec(parameter).dtype)};
    }
}

}  // namespace dlprim
