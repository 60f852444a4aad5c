// SPDX-License-Identifier: MIT
// Pointwise nodes, for the passes that merge and duplicate them.
#include "graph/passes/pointwise_nodes.hpp"

#include "engine/pointwise/job.hpp"
#include "engine/pointwise/merge.hpp"
#include "engine/pointwise/program.hpp"
#include "graph/operator.hpp"

#include <dlprim/error.hpp>

#include <algorithm>

namespace dlprim {

namespace {

constexpr int max_nodes = 200;          // of a program: limits registers and compile time
constexpr std::size_t max_inputs = 16;  // each takes two kernel parameters
/// A tensor may stay alive for this many more launches: the result that it replaces was alive
/// there.
constexpr int nearby = 4;

std::vector<Shape> shapes_of(const Graph& graph, const std::vector<ValueId>& values) {
    std::vector<Shape> shapes;
    shapes.reserve(values.size());
    for (ValueId id : values) shapes.push_back(graph.shape(id));
    return shapes;
}

bool reads(const pointwise::Program& program, int input) {
    return std::any_of(
        program.outputs.begin(), program.outputs.end(),
        [&](const pointwise::Output& out) { return pointwise::uses_input(out.value, input); });
}

/// Joins equal inputs of `program`, whose values are `from`, and drops inputs that are not read.
/// `to` gets the remaining values.
pointwise::Program tidied(const pointwise::Program& program, const std::vector<ValueId>& from,
                          std::vector<ValueId>& to) {
    std::vector<int> numbers;
    to.clear();
    for (std::size_t i = 0; i < from.size(); ++i) {
        const auto found = std::find(to.begin(), to.end(), from[i]);
        if (found == to.end() && !reads(program, static_cast<int>(i))) {
            numbers.push_back(-1);
            continue;
        }
        numbers.push_back(static_cast<int>(found - to.begin()));
        if (found == to.end()) to.push_back(from[i]);
    }
    return pointwise::renumber(program, numbers, static_cast<int>(to.size()));
}

bool is_float32(const Graph& graph, const std::vector<ValueId>& inputs) {
    bool any = false;
    for (ValueId id : inputs) {
        const TensorSpec& spec = graph.spec(id);
        if (spec.dtype == DType::f32)
            any = true;
        else if (spec.dtype == DType::f64 ||
                 (spec.dtype != DType::boolean && spec.shape.numel() != 1))
            return false;
    }
    return any;
}

}  // namespace

PointwiseNodes::PointwiseNodes(Graph& graph)
    : graph_(graph),
      readers_(graph.values.size()),
      fixed_(graph.values.size(), 0),
      drafts_(graph.nodes.size()) {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
        for (ValueId input : graph_.nodes[i].inputs) add_reader(input, static_cast<NodeId>(i));
    for (const auto& output : graph_.outputs) add_reader(output.first, outside);
    for (const auto& loss : graph_.losses) add_reader(loss.first, outside);
    for (const auto& gradient : graph_.gradients) add_reader(gradient.second, outside);
    for (const auto& assignment : graph_.assignments) {
        add_reader(assignment.source, outside);
        add_reader(assignment.target, outside);
    }
    for (std::size_t i = 0; i < graph_.values.size(); ++i) {
        const Role role = graph_.values[i].role;
        fixed_[i] = role == Role::parameter || role == Role::constant;
    }
    for (const Node& node : graph_.nodes) {
        const bool all = std::all_of(node.inputs.begin(), node.inputs.end(),
                                     [&](ValueId id) { return fixed_[at(id)] != 0; });
        for (ValueId id : node.outputs) fixed_[at(id)] = all;
    }
}

void PointwiseNodes::add_reader(ValueId value, NodeId id) {
    std::vector<NodeId>& all = readers_[at(value)];
    const auto place = std::lower_bound(all.begin(), all.end(), id);
    if (place == all.end() || *place != id) all.insert(place, id);
}

bool PointwiseNodes::is_free(NodeId id) const {
    const Node& node = graph_.nodes[at(id)];
    if (node.removed || node.op->type() != "Pointwise" || !node.epilogue.empty()) return false;
    if (!node.engine.empty() && !node.engine_by_type) return false;
    if (node.attrs.has(pointwise::arguments_attr)) return false;  // no numbers to fold
    return is_float32(graph_, node.inputs) &&
           std::all_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId out) { return graph_.spec(out).dtype == DType::f32; });
}

Shape PointwiseNodes::shape_of(const Node& node) const {
    return pointwise::broadcast_shape(shapes_of(graph_, node.inputs), node.attrs.ints("shape"));
}

const PointwiseDraft& PointwiseNodes::draft_of(NodeId id) const {
    std::optional<PointwiseDraft>& known = drafts_[at(id)];
    if (known) return *known;
    const Node& node = graph_.nodes[at(id)];
    const std::string& code = node.attrs.text("code");
    const Doubles scalars = node.attrs.numbers("scalars");
    pointwise::Program program = scalars.empty()
                                     ? *pointwise::parsed_simple(code)
                                     : pointwise::bind_scalars(pointwise::parse(code), scalars);
    // Some inputs only give the node its shape, so the program may read fewer than the node has.
    program.inputs = static_cast<int>(node.inputs.size());
    known = PointwiseDraft{std::move(program), node.inputs, node.attrs};
    return *known;
}

std::optional<PointwiseDraft> PointwiseNodes::taken_in(NodeId id, const PointwiseDraft& draft,
                                                       ValueId value) const {
    const Node& consumer = graph_.nodes[at(id)];
    const NodeId made_by = graph_.value(value).producer;
    if (made_by < 0 || made_by == id || !is_free(made_by)) return std::nullopt;
    if (is_fixed(value) && !is_fixed(consumer.outputs[0])) return std::nullopt;
    const Node& producer = graph_.nodes[at(made_by)];
    const Shape inner = shape_of(producer), outer = shape_of(consumer);
    if (inner != outer || graph_.shape(value) != inner) return std::nullopt;

    // The consumer may read the value through several inputs, which are joined first.
    PointwiseDraft result;
    std::vector<ValueId> inputs;
    const pointwise::Program program = tidied(draft.program, draft.inputs, inputs);
    const auto place = std::find(inputs.begin(), inputs.end(), value) - inputs.begin();
    const auto output = std::find(producer.outputs.begin(), producer.outputs.end(), value) -
                        producer.outputs.begin();
    const PointwiseDraft& made = draft_of(made_by);
    if (!pointwise::can_merge(made.program, static_cast<int>(output), inner, program,
                              static_cast<int>(place), outer, shapes_of(graph_, made.inputs)))
        return std::nullopt;
    std::vector<int> consumer_map, producer_map;
    const pointwise::Program merged =
        pointwise::merge(made.program, static_cast<int>(output), program, static_cast<int>(place),
                         consumer_map, producer_map);
    std::vector<ValueId> all(at(merged.inputs));
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (consumer_map[i] >= 0) all[at(consumer_map[i])] = inputs[i];
    for (std::size_t i = 0; i < made.inputs.size(); ++i) all[at(producer_map[i])] = made.inputs[i];
    result.program = tidied(merged, all, result.inputs);
    int nodes = 0;
    for (const auto& out : result.program.outputs) nodes += pointwise::node_count(out.value);
    if (nodes > max_nodes || result.inputs.size() > max_inputs) return std::nullopt;

    result.attrs = consumer.attrs;
    Doubles scalars;
    result.attrs.set("code", pointwise::print(pointwise::lift_scalars(result.program, scalars)));
    result.attrs.set("scalars", std::move(scalars));
    result.attrs.set("dtypes", Strings{std::string(name_of(DType::f32))});
    if (pointwise::broadcast_shape(shapes_of(graph_, result.inputs), result.attrs.ints("shape")) !=
        outer)
        result.attrs.set("shape", outer.to_vector());
    if (!is_float32(graph_, result.inputs) || !same_outputs(consumer, result)) return std::nullopt;
    return result;
}

/// Whether the operator infers the same outputs from the new attributes and inputs as the node has
/// now. Also rejects programs that are nested too deep to be printed and parsed again.
bool PointwiseNodes::same_outputs(const Node& node, const PointwiseDraft& draft) const {
    std::vector<TensorSpec> specs;
    for (ValueId id : draft.inputs) specs.push_back(graph_.spec(id));
    try {
        const std::vector<TensorSpec> made = node.op->infer(draft.attrs, specs);
        for (std::size_t k = 0; k < made.size(); ++k)
            if (made[k] != graph_.spec(node.outputs.at(k))) return false;
        return made.size() == node.outputs.size();
    } catch (const Error&) {
        return false;
    }
}

double PointwiseNodes::bytes_of(ValueId value) const {
    const TensorSpec& spec = graph_.spec(value);
    return static_cast<double>(spec.shape.numel()) * static_cast<double>(size_of(spec.dtype));
}

/// The last node that reads a value, or `outside` if the value stays alive.
NodeId PointwiseNodes::last_reader(ValueId value) const {
    if (graph_.value(value).role != Role::intermediate) return outside;
    NodeId last = -1;
    for (NodeId reader : readers(value)) {
        last = std::max(last, reader);
        if (reader == outside || !graph_.nodes[at(reader)].op->is_view()) continue;
        for (ValueId view : graph_.nodes[at(reader)].outputs)
            last = std::max(last, last_reader(view));
    }
    return last;
}

/// The number of launches from one node to another. Views need none.
int PointwiseNodes::distance(NodeId from, NodeId to) const {
    int count = 0;
    for (NodeId i = from; i < to; ++i)
        count += !graph_.nodes[at(i)].removed && !graph_.nodes[at(i)].op->is_view();
    return count;
}

bool PointwiseNodes::keeps_more(NodeId id, const std::map<ValueId, NodeId>& wanted) const {
    const Node& node = graph_.nodes[at(id)];
    const Shape whole = shape_of(node);
    double more = -bytes_of(node.outputs[0]) * distance(id, last_reader(node.outputs[0]));
    bool far = false;
    for (const auto& [input, until] : wanted) {
        const NodeId last = last_reader(input);
        if (last >= until || !is_big(input, whole)) continue;
        const int longer = distance(last, until);
        far = far || longer > nearby;
        more += bytes_of(input) * longer;
    }
    return far && more > 0;
}

void PointwiseNodes::change(NodeId id, PointwiseDraft draft, NodeId producer) {
    Node& node = graph_.nodes[at(id)];
    for (ValueId input : node.inputs) remove_reader(input, id);
    node.attrs = draft.attrs;
    node.inputs = draft.inputs;
    drafts_[at(id)] = std::move(draft);
    for (ValueId input : node.inputs) add_reader(input, id);
    if (producer == outside) return;
    const Node& taken = graph_.nodes[at(producer)];
    // If one of the two must compute in float, the merged node does.
    if (taken.precision != node.precision) node.precision = Precision::fp32;
    node.recompute = node.recompute || taken.recompute;
    node.fused.push_back(taken.name);
    node.fused.insert(node.fused.end(), taken.fused.begin(), taken.fused.end());
}

void PointwiseNodes::remove(NodeId id) {
    Node& node = graph_.nodes[at(id)];
    for (ValueId input : node.inputs) remove_reader(input, id);
    node.removed = true;
}

}  // namespace dlprim
