// SPDX-License-Identifier: MIT
// Topological order by depth-first search, without recursion, since a file may chain millions of
// nodes.
#include "formats/onnx/node_order.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace dlprim::onnx {

namespace {

using Name = std::string_view;

/// By node: the nodes of the same graph whose results it reads.
using Sources = std::vector<std::vector<std::size_t>>;

/// What a graph defines before its first node.
std::set<Name> given_names(const Graph& graph) {
    std::set<Name> names;
    for (const ValueInfo& input : graph.inputs) names.insert(input.name);
    for (const auto& [name, tensor] : graph.initializers) names.insert(name);
    return names;
}

Sources sources_of(const std::vector<Node>& nodes, const std::set<Name>& given) {
    std::map<Name, std::size_t> makers;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        for (const std::string& name : nodes[i].outputs)
            if (!name.empty() && !given.count(name)) makers.emplace(name, i);
    Sources sources(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i)
        each_name_read(nodes[i], [&](const std::string& name) {
            if (const auto maker = makers.find(name); maker != makers.end())
                sources[i].push_back(maker->second);
        });
    return sources;
}

/// "Relu 'name'", by the first output of a node without a name.
std::string label(const Node& node) {
    const bool is_named = !node.name.empty() || node.outputs.empty();
    return cat(node.type, " '", is_named ? node.name : node.outputs[0], "'");
}

/// The nodes read each other's results: each one the next one's, and the last one the first one's.
[[noreturn]] void refuse_cycle(const std::vector<Node>& nodes,
                               const std::vector<std::size_t>& cycle) {
    constexpr std::size_t most_named = 8;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(most_named, cycle.size()); ++i)
        names.push_back(label(nodes[cycle[i]]));
    if (cycle.size() == 1) fail(ErrorKind::format, "the node ", names[0], " reads its own result");
    if (cycle.size() > most_named) names.push_back(cat(cycle.size() - most_named, " more"));
    fail(ErrorKind::format, "the nodes ", join(names, ", "),
         " form a cycle: each reads a result of the next one, and the last one a result of the "
         "first one");
}

struct Visit {
    std::size_t node, next_source = 0;
};

std::vector<std::size_t> sorted(const std::vector<Node>& nodes, const Sources& sources) {
    enum class State { unseen, open, done };
    std::vector<State> states(nodes.size(), State::unseen);
    std::vector<std::size_t> order;
    std::vector<Visit> path;
    for (std::size_t start = 0; start < nodes.size(); ++start) {
        if (states[start] == State::unseen) path.push_back({start});
        while (!path.empty()) {
            const std::size_t node = path.back().node;
            states[node] = State::open;
            if (path.back().next_source == sources[node].size()) {
                states[node] = State::done;
                order.push_back(node);
                path.pop_back();
                continue;
            }
            const std::size_t source = sources[node][path.back().next_source++];
            if (states[source] == State::unseen) path.push_back({source});
            if (states[source] != State::open) continue;
            std::vector<std::size_t> cycle;
            for (const Visit& visit : path)
                if (!cycle.empty() || visit.node == source) cycle.push_back(visit.node);
            refuse_cycle(nodes, cycle);
        }
    }
    return order;
}

void sort_nodes(std::vector<Node>& nodes, const std::set<Name>& given) {
    const std::vector<std::size_t> order = sorted(nodes, sources_of(nodes, given));
    if (std::is_sorted(order.begin(), order.end())) return;
    std::vector<Node> result;
    result.reserve(nodes.size());
    for (const std::size_t at : order) result.push_back(std::move(nodes[at]));
    nodes = std::move(result);
}

}  // namespace

void each_name_read(const Node& node, const std::function<void(const std::string&)>& use) {
    for (const std::string& name : node.inputs) use(name);
    for (const auto& [attribute_name, attribute] : node.attributes) {
        const auto* const owned = std::get_if<std::shared_ptr<const Graph>>(&attribute.data);
        if (!owned) continue;
        const Graph& graph = **owned;
        std::set<Name> own = given_names(graph);
        for (const Node& inner : graph.nodes)
            own.insert(inner.outputs.begin(), inner.outputs.end());
        const auto use_if_outer = [&](const std::string& name) {
            if (!own.count(name)) use(name);
        };
        for (const Node& inner : graph.nodes) each_name_read(inner, use_if_outer);
        for (const ValueInfo& output : graph.outputs) use_if_outer(output.name);
    }
}

void sort_nodes(Graph& graph) {
    sort_nodes(graph.nodes, given_names(graph));
}

void sort_nodes(Function& function) {
    sort_nodes(function.nodes, {function.inputs.begin(), function.inputs.end()});
}

}  // namespace dlprim::onnx
