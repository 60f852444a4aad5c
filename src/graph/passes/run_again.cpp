// SPDX-License-Identifier: MIT
// RunAgain: forward nodes that run a second time in backward.
#include "graph/passes/run_again.hpp"

#include "graph/operator.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace dlprim {

namespace {

/// As in lower_precision: what is so many times smaller than the tensor that it is made from is a
/// statistic, and kept.
constexpr std::int64_t small_share = 16;

}  // namespace

RunAgain::RunAgain(const Graph& graph, const std::vector<char>& constant)
    : graph_(graph),
      visible_(graph.values.size(), 0),
      small_(graph.values.size(), 0),
      can_(graph.nodes.size(), 0),
      bytes_(graph.nodes.size(), 0) {
    find_visible();
    find_small();
    find_able(constant);
}

/// Whether the result is the memory of the first input, or a part of it.
bool RunAgain::shares_memory(const Node& node) const {
    return node.op->is_view() ||
           (!node.inputs.empty() && node.op->is_beginning(node, graph_.shape(node.inputs[0])));
}

void RunAgain::find_visible() {
    for (const auto& output : graph_.outputs) visible_[at(output.first)] = 1;
    for (const auto& loss : graph_.losses) visible_[at(loss.first)] = 1;
    for (const auto& gradient : graph_.gradients) visible_[at(gradient.second)] = 1;
    for (const auto& assignment : graph_.assignments) visible_[at(assignment.source)] = 1;
    // What the solver's parts read stays, too.
    for (const Node& node : graph_.nodes)
        if (node.part != Part::forward && node.part != Part::backward)
            for (const ValueId id : node.inputs) visible_[at(id)] = 1;
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node)
        if (shares_memory(*node) && visible_[at(node->outputs[0])])
            visible_[at(node->inputs[0])] = 1;
}

void RunAgain::find_small() {
    for (const Node& node : graph_.nodes) {
        if (shares_memory(node)) {
            small_[at(node.outputs[0])] = small_[at(node.inputs[0])];
            continue;
        }
        std::int64_t largest = 0;
        bool any_small = false, all_small = true;
        for (const ValueId id : node.inputs) {
            const Role role = graph_.value(id).role;
            if (role != Role::intermediate && role != Role::input) continue;
            largest = std::max(largest, graph_.shape(id).numel());
            any_small = any_small || small_[at(id)];
            all_small = all_small && small_[at(id)];
        }
        for (const ValueId id : node.outputs) largest = std::max(largest, graph_.shape(id).numel());
        for (const ValueId id : node.outputs)
            small_[at(id)] =
                (any_small && all_small) || graph_.shape(id).numel() * small_share <= largest;
    }
}

void RunAgain::find_able(const std::vector<char>& constant) {
    std::set<ValueId> overwritten;
    for (const Assignment& assignment : graph_.assignments) {
        const NodeId maker = graph_.value(assignment.source).producer;
        if (maker < 0 || graph_.nodes[at(maker)].part == Part::forward ||
            graph_.nodes[at(maker)].part == Part::backward)
            overwritten.insert(assignment.target);
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
        const Node& node = graph_.nodes[i];
        if (node.part != Part::forward || shares_memory(node) || constant[at(node.outputs[0])] ||
            std::any_of(node.inputs.begin(), node.inputs.end(),
                        [&](ValueId id) { return overwritten.count(id) > 0; }))
            continue;
        for (const ValueId id : node.outputs)
            if (!small_[at(id)] && !visible_[at(id)])
                bytes_[i] += static_cast<std::uint64_t>(graph_.shape(id).numel()) *
                             size_of(graph_.spec(id).dtype);
        can_[i] = bytes_[i] > 0;
    }
}

std::vector<NodeId> RunAgain::sources(NodeId id) const {
    std::vector<NodeId> result;
    for (ValueId input : graph_.nodes[at(id)].inputs) {
        NodeId maker = graph_.value(input).producer;
        while (maker >= 0 && shares_memory(graph_.nodes[at(maker)])) {
            input = graph_.nodes[at(maker)].inputs[0];
            maker = graph_.value(input).producer;
        }
        if (maker >= 0 && !small_[at(input)]) result.push_back(maker);
    }
    return result;
}

std::vector<char> RunAgain::dropped(const std::vector<char>& again) const {
    std::vector<char> result(graph_.values.size(), 0);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
        const Node& node = graph_.nodes[i];
        if (node.part != Part::forward) continue;
        if (shares_memory(node))
            result[at(node.outputs[0])] = result[at(node.inputs[0])];
        else if (again[i] && can_[i])
            for (const ValueId id : node.outputs)
                result[at(id)] = !small_[at(id)] && !visible_[at(id)];
    }
    return result;
}

std::vector<char> RunAgain::needed(const std::vector<char>& again) const {
    const std::vector<char> gone = dropped(again);
    std::vector<char> result(graph_.nodes.size(), 0);
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
        const Node& node = graph_.nodes[i];
        if (node.part != Part::backward && !result[i]) continue;
        for (const ValueId id : node.inputs)
            if (gone[at(id)]) result[at(graph_.value(id).producer)] = 1;
    }
    return result;
}

Graph RunAgain::apply(const std::vector<char>& again, std::vector<NodeId>& origin) const {
    const std::vector<char> gone = dropped(again), runs = needed(again);
    Graph graph = graph_;
    std::map<ValueId, NodeId> origins;  // by the first value that a node makes
    std::map<ValueId, ValueId> copies;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
        origins[graph_.nodes[i].outputs[0]] = static_cast<NodeId>(i);
        if (!runs[i]) continue;
        Node copy = graph_.nodes[i];
        copy.name += again_suffix;
        copy.part = Part::backward;
        copy.again = true;
        for (ValueId& id : copy.inputs)
            if (gone[at(id)]) id = copies.at(id);
        for (ValueId& id : copy.outputs) {
            Value value = graph_.value(id);
            value.name += again_suffix;
            value.producer = static_cast<NodeId>(graph.nodes.size());
            const ValueId made = graph.add_value(std::move(value));
            copies[id] = made;
            id = made;
        }
        origins[copy.outputs[0]] = static_cast<NodeId>(i);
        graph.nodes.push_back(std::move(copy));
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
        if (Node& node = graph.nodes[i]; node.part == Part::backward)
            for (ValueId& id : node.inputs)
                if (gone[at(id)]) id = copies.at(id);
    graph.sort();
    origin.clear();
    for (const Node& node : graph.nodes) origin.push_back(origins.at(node.outputs[0]));
    return graph;
}

}  // namespace dlprim
