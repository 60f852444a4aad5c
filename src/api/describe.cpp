// SPDX-License-Identifier: MIT
// describe(): reports on the graph that build_graph() makes, before any pass changes it.
#include <dlprim/describe.hpp>

#include "api/net_impl.hpp"
#include "base/env.hpp"
#include "base/synonyms.hpp"
#include "base/text.hpp"
#include "formats/json_net.hpp"
#include "graph/operator.hpp"
#include "runtime/access.hpp"

#include <set>

namespace dlprim {

namespace {

TensorDescription describe_tensor(const Graph& graph, ValueId id) {
    const Value& value = graph.value(id);
    return {value.name, value.spec.shape, value.spec.dtype, value.producer};
}

/// Nominal operations of the forward pass, in 10^9.
double gflop(const Graph& graph, const Node& node) {
    std::vector<TensorSpec> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(graph.spec(id));
    for (const ValueId id : node.outputs) outputs.push_back(graph.spec(id));
    return node.op->flops(node.attrs, inputs, outputs) * 1e-9;
}

OperatorDescription describe_operator(const Graph& graph, const Node& node,
                                      std::set<ValueId>& params_seen) {
    OperatorDescription op;
    op.name = node.name;
    op.type = node.type();
    op.options = write_options_json(node.alias.empty() ? node.attrs : node.alias_attrs);
    op.precision = node.precision;
    op.frozen = node.frozen;
    op.gflop = gflop(graph, node);
    for (const ValueId id : node.inputs) {
        const Value& value = graph.value(id);
        if (value.role != Role::parameter)
            op.inputs.push_back(describe_tensor(graph, id));
        else
            op.params.push_back({value.name, value.spec.shape, value.spec.dtype, value.trainable,
                                 !params_seen.insert(id).second});
    }
    for (const ValueId id : node.outputs) op.outputs.push_back(describe_tensor(graph, id));
    return op;
}

void count_params(NetworkDescription& network) {
    for (const OperatorDescription& op : network.operators) {
        for (const ParamDescription& param : op.params) {
            if (param.shared) continue;
            network.params += param.shape.numel();
            if (param.trainable) network.trainable_params += param.shape.numel();
        }
    }
}

NetworkDescription describe_graph(const Graph& graph) {
    NetworkDescription network;
    for (const ValueId id : graph.inputs) network.inputs.push_back(describe_tensor(graph, id));
    std::set<ValueId> params_seen;
    for (const Node& node : graph.nodes)
        network.operators.push_back(describe_operator(graph, node, params_seen));
    for (const auto& [id, name] : graph.outputs) {
        network.outputs.push_back(describe_tensor(graph, id));
        network.outputs.back().name = name;
        if (const auto loss = graph.losses.find(id); loss != graph.losses.end())
            network.losses[name] = loss->second;
    }
    count_params(network);
    return network;
}

NetworkDescription describe_net(NetDescription description, const NetOptions& options) {
    apply_options(description, options);
    return describe_graph(build_graph(description, options));
}

}  // namespace

NetworkDescription describe(std::string_view text, const NetOptions& options) {
    return describe_net(parse_net_json(text, "network"), options);
}

NetworkDescription describe_file(const std::string& path, const NetOptions& options) {
    return describe_net(parse_net_json(read_file(path), path), options);
}

NetworkDescription describe(const Net& net) {
    return describe_graph(core_of(net).base_graph());
}

std::string name_hint(std::string_view name, const std::vector<std::string>& known) {
    return did_you_mean(name, known);
}

std::string operator_type_of(std::string_view name) {
    const TypeSynonym* synonym = find_type_synonym(name);
    return synonym == nullptr ? std::string() : std::string(synonym->type);
}

}  // namespace dlprim
