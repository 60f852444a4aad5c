// SPDX-License-Identifier: MIT
// Graph: adding, replacing, ordering and removing nodes.
#include "graph/graph.hpp"

#include "base/text.hpp"
#include "graph/operator.hpp"

#include <algorithm>
#include <cstring>
#include <set>

namespace dlprim {

namespace {
constexpr std::int64_t block_alignment = Graph::block_grain;
}

ValueId Graph::add_value(Value value) {
    values.push_back(std::move(value));
    return static_cast<ValueId>(values.size()) - 1;
}

ValueId Graph::find(std::string_view name) const {
    for (std::size_t i = values.size(); i-- > 0;)
        if (values[i].name == name) return static_cast<ValueId>(i);
    return no_value;
}

ValueId Graph::scalar(std::string_view name, DType dtype) {
    if (auto found = scalars_.find(name); found != scalars_.end()) return found->second;
    Value value;
    value.name = std::string(name);
    value.spec = {Shape{1}, dtype};
    value.role = Role::scalar;
    const ValueId id = add_value(std::move(value));
    scalars_.emplace(std::string(name), id);
    return id;
}

std::map<ValueId, std::int64_t> Graph::block_offsets() const {
    std::map<ValueId, std::int64_t> offsets;
    std::int64_t next = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const Value& v = values[i];
        if (v.role != Role::parameter || !v.trainable || v.spec.dtype != DType::f32) continue;
        offsets[static_cast<ValueId>(i)] = next;
        next += (v.spec.shape.numel() + block_alignment - 1) / block_alignment * block_alignment;
    }
    return offsets;
}

std::int64_t Graph::block_elements() const {
    std::int64_t end = 0;
    for (const auto& [id, offset] : block_offsets()) {
        const std::int64_t size = shape(id).numel();
        end = std::max(end,
                       offset + (size + block_alignment - 1) / block_alignment * block_alignment);
    }
    return end;
}

ValueId Graph::block(std::string_view name) {
    if (const ValueId found = find(name); found != no_value) return found;
    Value value;
    value.name = std::string(name);
    value.spec = {Shape{block_elements()}, DType::f32};
    value.role = Role::block;
    return add_value(std::move(value));
}

ValueId Graph::block_part(std::string_view name, std::int64_t begin, std::int64_t count) {
    Value value;
    value.name = std::string(name) + "/part";
    value.spec = {Shape{count}, DType::f32};
    value.role = Role::block;
    value.part_begin = begin;
    return add_value(std::move(value));
}

ValueId Graph::constant(std::string_view name, const Shape& shape, const std::vector<float>& data) {
    require(static_cast<std::int64_t>(data.size()) == shape.numel(), "constant '", name,
            "' of shape ", shape, " got ", data.size(), " elements");
    Value value;
    value.name = std::string(name);
    value.spec = {shape, DType::f32};
    value.role = Role::constant;
    value.data.resize(data.size() * sizeof(float));
    std::memcpy(value.data.data(), data.data(), value.data.size());
    return add_value(std::move(value));
}

std::string_view Node::type() const {
    return alias.empty() ? op->type() : alias;
}

std::vector<ValueId> Graph::add(std::string_view type, std::string_view name,
                                std::vector<ValueId> node_inputs, const Attrs& attrs) {
    Node node;
    node.name = std::string(name);
    if (int& count = names_[node.name]; count++ > 0) node.name = cat(name, "#", count);
    const auto where = [&] { return cat("[", type, " '", node.name, "'] "); };
    node.part = part;
    node.precision = precision;
    CompleteType complete = OperatorRegistry::instance().complete(type, attrs, where);
    node.op = &complete.op;
    node.attrs = std::move(complete.attrs);
    node.alias = complete.alias;
    node.alias_attrs = std::move(complete.alias_attrs);
    node.inputs = std::move(node_inputs);
    std::vector<TensorSpec> specs;
    specs.reserve(node.inputs.size());
    for (ValueId id : node.inputs) specs.push_back(spec(id));
    std::vector<TensorSpec> made;
    try {
        made = node.op->infer(node.attrs, specs);
    } catch (const Error& error) {
        throw Error(error.kind(), where() + error.what());
    }
    const auto producer = static_cast<NodeId>(nodes.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
        Value value;
        value.name = cat(node.name, ":", i);
        value.spec = made[i];
        value.producer = producer;
        node.outputs.push_back(add_value(std::move(value)));
    }
    nodes.push_back(std::move(node));
    return nodes.back().outputs;
}

void Graph::release_name(std::string_view name) {
    if (auto found = names_.find(name); found != names_.end()) names_.erase(found);
}

ValueId Graph::add1(std::string_view type, std::string_view name, std::vector<ValueId> node_inputs,
                    const Attrs& attrs) {
    return add(type, name, std::move(node_inputs), attrs).at(0);
}

std::vector<ValueId> Graph::pointwise(std::string_view name, std::string_view code,
                                      std::vector<ValueId> node_inputs,
                                      const std::vector<double>& scalars) {
    return add("Pointwise", name, std::move(node_inputs),
               Attrs{{"code", std::string(code)}, {"scalars", Doubles(scalars)}});
}

ValueId Graph::pointwise1(std::string_view name, std::string_view code,
                          std::vector<ValueId> node_inputs, const std::vector<double>& scalars) {
    return pointwise(name, code, std::move(node_inputs), scalars).at(0);
}

ValueId Graph::reshape(std::string_view name, ValueId value_id, const Shape& new_shape) {
    if (shape(value_id) == new_shape) return value_id;
    return add1("Reshape", name, {value_id}, Attrs{{"dims", Ints(new_shape.to_vector())}});
}

void Graph::replace_uses(ValueId from, ValueId to) {
    if (from == to) return;
    for (Node& node : nodes) {
        if (!node.removed) std::replace(node.inputs.begin(), node.inputs.end(), from, to);
    }
    for (auto& output : outputs)
        if (output.first == from) output.first = to;
    if (auto loss = losses.extract(from); !loss.empty()) losses[to] = loss.mapped();
    for (Assignment& assignment : assignments)
        if (assignment.source == from) assignment.source = to;
    for (auto& gradient : gradients)
        if (gradient.second == from) gradient.second = to;
}

namespace {

/// Whether no node is removed, and each stands behind those that make its inputs.
bool is_in_order(const Graph& graph) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        if (graph.nodes[i].removed) return false;
        for (const ValueId id : graph.nodes[i].inputs)
            if (graph.value(id).producer >= static_cast<NodeId>(i)) return false;
    }
    return true;
}

}  // namespace

void Graph::sort() {
    if (is_in_order(*this)) return;
    // A depth-first walk over producers keeps the given order wherever it is valid already.
    std::vector<Node> ordered;
    ordered.reserve(nodes.size());
    std::vector<NodeId> moved(nodes.size(), -1);
    std::vector<char> state(nodes.size(), 0);
    std::vector<std::pair<NodeId, std::size_t>> stack;
    auto visit = [&](NodeId root) {
        stack.emplace_back(root, 0);
        while (!stack.empty()) {
            auto& [id, next] = stack.back();
            Node& node = nodes[static_cast<std::size_t>(id)];
            state[static_cast<std::size_t>(id)] = 1;
            if (next < node.inputs.size()) {
                const NodeId from = value(node.inputs[next++]).producer;
                if (from < 0 || state[static_cast<std::size_t>(from)] == 2) continue;
                require(state[static_cast<std::size_t>(from)] == 0,
                        "the network has a cycle through '", node.name, "'");
                stack.emplace_back(from, 0);
            } else {
                state[static_cast<std::size_t>(id)] = 2;
                moved[static_cast<std::size_t>(id)] = static_cast<NodeId>(ordered.size());
                ordered.push_back(std::move(node));
                stack.pop_back();
            }
        }
    };
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (!nodes[i].removed && state[i] == 0) visit(static_cast<NodeId>(i));
    nodes = std::move(ordered);
    for (Value& v : values)
        if (v.producer >= 0) v.producer = moved[static_cast<std::size_t>(v.producer)];
}

void Graph::remove_dead() {
    std::vector<char> needed(nodes.size(), 0);
    std::vector<NodeId> stack;
    auto want = [&](ValueId id) {
        const NodeId from = value(id).producer;
        if (from >= 0 && !needed[static_cast<std::size_t>(from)]) {
            needed[static_cast<std::size_t>(from)] = 1;
            stack.push_back(from);
        }
    };
    for (const auto& output : outputs) want(output.first);
    for (const auto& assignment : assignments) want(assignment.source);
    for (const auto& gradient : gradients) want(gradient.second);
    while (!stack.empty()) {
        const NodeId id = stack.back();
        stack.pop_back();
        for (ValueId input : nodes[static_cast<std::size_t>(id)].inputs) want(input);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (!needed[i]) nodes[i].removed = true;
    sort();
}

}  // namespace dlprim
