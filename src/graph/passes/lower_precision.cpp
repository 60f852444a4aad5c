// SPDX-License-Identifier: MIT
// lower_precision: which values are stored in 16 bits.
//
// First, all values that some engine supports in 16 bits are stored so. This order is needed
// because the fast 16-bit engines only help when whole regions are in 16 bits: the operands of a
// product and everything between it and the next product. Then each value returns to float if that
// is faster. Where an engine needs the same type for all operands (Concat), they change together or
// not at all.
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace dlprim {

namespace {

/// A value that is this many times smaller than the largest operand of its producer is a statistic,
/// or too small to matter to its readers.
constexpr std::int64_t small_share = 16;

std::optional<DType> narrow_type(Precision precision) {
    if (precision == Precision::fp16) return DType::f16;
    if (precision == Precision::bf16) return DType::bf16;
    return std::nullopt;
}

class Lowering {
  public:
    Lowering(Graph& graph, std::int64_t least, double cost,
             const std::function<double(const Graph&, const Node&)>& seconds)
        : graph_(graph),
          least_(least),
          cost_(cost),
          seconds_(seconds),
          readers_(graph.values.size()),
          views_(graph.values.size()),
          fixed_(graph.values.size(), 0),
          seen_(graph.values.size(), 0),
          known_(graph.nodes.size()) {
        for (std::size_t i = 0; i < graph.values.size(); ++i) {
            const Role role = graph.values[i].role;
            fixed_[i] = role == Role::parameter || role == Role::constant;
        }
        for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
            const Node& node = graph.nodes[i];
            for (ValueId input : node.inputs)
                if (!node.op->is_view()) readers_[at(input)].push_back(i);
            if (node.op->is_view()) views_[at(node.inputs[0])].push_back(node.outputs[0]);
            const bool fixed = std::all_of(node.inputs.begin(), node.inputs.end(),
                                           [&](ValueId id) { return fixed_[at(id)] != 0; });
            for (ValueId output : node.outputs) fixed_[at(output)] = fixed;
        }
        for (const auto& output : graph.outputs) seen_[at(output.first)] = 1;
        for (const auto& assignment : graph.assignments) seen_[at(assignment.source)] = 1;
        for (const auto& gradient : graph.gradients) {
            seen_[at(gradient.second)] = 1;
            if (graph.value(gradient.first).role != Role::parameter) continue;
            for (ValueId id = gradient.second;;) {
                const NodeId made_by = graph.value(id).producer;
                gradients_.push_back(id);
                if (made_by < 0 || !graph.nodes[at(made_by)].op->is_view()) break;
                id = graph.nodes[at(made_by)].inputs[0];
            }
        }
        std::sort(gradients_.begin(), gradients_.end());
    }

    void run() {
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            const Node& node = graph_.nodes[i];
            if (node.removed || node.op->is_view()) continue;
            if (node.part != Part::forward && node.part != Part::backward) continue;
            const std::optional<DType> type = narrow_type(node.precision);
            if (!type) continue;
            for (ValueId output : node.outputs)
                if (graph_.spec(output).dtype == DType::f32 && is_activation(node, output))
                    try_one(output, node.precision, *type);
        }
        for (const Change& change : changes_) go_back(change);
    }

  private:
    static std::size_t at(int id) { return static_cast<std::size_t>(id); }

    /// Whether the value that the node makes may be stored in fewer bits.
    bool is_activation(const Node& node, ValueId id) const {
        const TensorSpec& spec = graph_.spec(id);
        const std::int64_t size = spec.shape.numel();
        if (spec.dtype != DType::f32 || fixed_[at(id)]) return false;
        if (!node.inputs.empty() && node.op->is_beginning(node, graph_.shape(node.inputs[0])))
            return true;
        if (size < least_) return false;
        for (ValueId input : node.inputs)
            if (!fixed_[at(input)] && graph_.shape(input).numel() > size * small_share)
                return false;
        return true;
    }

    /// Collects all values that share the value's memory, and the nodes that read them. Returns
    /// false if one of them is visible outside the graph or is part of a parameter's gradient.
    bool collect(ValueId id, Precision precision, std::vector<ValueId>& alike,
                 std::vector<std::size_t>& nodes) const {
        if (seen_[at(id)]) return false;
        alike.push_back(id);
        for (std::size_t reader : readers_[at(id)]) {
            const Node& node = graph_.nodes[reader];
            if (node.precision != precision) return false;
            if (node.part != Part::forward && node.part != Part::backward) return false;
            if (makes_gradient_of(node, graph_.shape(id).numel())) return false;
            if (std::find(nodes.begin(), nodes.end(), reader) == nodes.end())
                nodes.push_back(reader);
        }
        return std::all_of(views_[at(id)].begin(), views_[at(id)].end(),
                           [&](ValueId view) { return collect(view, precision, alike, nodes); });
    }

    /// Whether the node only changes the form of a parameter's gradient of that size.
    bool makes_gradient_of(const Node& node, std::int64_t size) const {
        std::vector<TensorSpec> inputs, outputs;
        for (ValueId id : node.inputs) inputs.push_back(graph_.spec(id));
        for (ValueId id : node.outputs) outputs.push_back(graph_.spec(id));
        if (node.op->flops(node.attrs, inputs, outputs) > 0) return false;
        return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
            return graph_.shape(output).numel() == size &&
                   std::binary_search(gradients_.begin(), gradients_.end(), output);
        });
    }

    /// Seconds that a node takes with the current types.
    double seconds(std::size_t node) {
        if (!known_[node]) known_[node] = seconds_(graph_, graph_.nodes[node]);
        return *known_[node];
    }

    /// Values that change their type together.
    struct Change {
        std::vector<ValueId> values;
        std::map<std::size_t, double>
            before;  ///< nodes that make and read them, with their seconds before the change
    };

    /// Adds a value to the change, if a node of precision `precision` makes it. Returns false if
    /// the value must stay float.
    bool add(Change& change, ValueId id, Precision precision, DType type) {
        while (graph_.value(id).producer >= 0) {
            const Node& maker = graph_.nodes[at(graph_.value(id).producer)];
            if (!maker.op->is_view()) break;
            id = maker.inputs[0];
        }
        if (std::find(change.values.begin(), change.values.end(), id) != change.values.end())
            return true;
        const NodeId made_by = graph_.value(id).producer;
        if (made_by < 0) return false;
        const Node& maker = graph_.nodes[at(made_by)];
        if (maker.precision != precision || !is_activation(maker, id)) return false;
        if (maker.part != Part::forward && maker.part != Part::backward) return false;
        std::vector<ValueId> alike;
        std::vector<std::size_t> nodes{at(made_by)};
        if (!collect(id, precision, alike, nodes)) return false;
        for (std::size_t node : nodes) change.before.emplace(node, seconds(node));
        for (ValueId value : alike) graph_.value(value).spec.dtype = type;
        change.values.insert(change.values.end(), alike.begin(), alike.end());
        for (std::size_t node : nodes) known_[node].reset();
        return true;
    }

    /// The number of a node that no engine supports with the current types, or -1.
    std::ptrdiff_t stuck(const Change& change) {
        for (const auto& [node, before] : change.before)
            if (seconds(node) == std::numeric_limits<double>::infinity())
                return static_cast<std::ptrdiff_t>(node);
        return -1;
    }

    /// Changes the value, and the operands that must change with it where engines need one type for
    /// all operands (Concat). Returns whether that is possible.
    bool extend(Change& change, ValueId id, Precision precision, DType type) {
        if (!add(change, id, precision, type)) return false;
        for (std::ptrdiff_t node; (node = stuck(change)) >= 0;) {
            const auto count = change.values.size();
            const Node& here = graph_.nodes[static_cast<std::size_t>(node)];
            for (const auto* operands : {&here.inputs, &here.outputs})
                for (ValueId operand : *operands)
                    if (graph_.spec(operand).dtype == DType::f32)
                        add(change, operand, precision, type);
            if (change.values.size() == count) return false;
        }
        return true;
    }

    void try_one(ValueId id, Precision precision, DType type) {
        Change change;
        if (extend(change, id, precision, type)) {
            changes_.push_back(std::move(change));
            return;
        }
        for (ValueId value : change.values) graph_.value(value).spec.dtype = DType::f32;
        for (const auto& [node, was] : change.before) known_[node] = was;
    }

    /// Makes the values float again if the nodes that make and read them are faster then.
    void go_back(const Change& change) {
        const auto together = [&] {
            double sum = 0;
            for (const auto& [node, was] : change.before) sum += seconds(node);
            return sum;
        };
        const auto store_as = [&](DType type) {
            for (ValueId id : change.values) graph_.value(id).spec.dtype = type;
            for (const auto& [node, was] : change.before) known_[node].reset();
        };
        const double narrow = together();
        const DType type = graph_.spec(change.values.front()).dtype;
        store_as(DType::f32);
        if (together() * cost_ >= narrow) store_as(type);
    }

    Graph& graph_;
    const std::int64_t least_;
    const double cost_;
    const std::function<double(const Graph&, const Node&)>& seconds_;
    std::vector<std::vector<std::size_t>> readers_;  ///< by ValueId: nodes that are not views
    std::vector<std::vector<ValueId>> views_;        ///< by ValueId
    std::vector<char> fixed_;                        ///< by ValueId: depends on parameters alone
    std::vector<char> seen_;                         ///< by ValueId: visible outside the graph
    std::vector<ValueId> gradients_;  ///< of parameters, and what they are views of; sorted
    std::vector<std::optional<double>> known_;  ///< by node: its seconds with the current types
    std::vector<Change> changes_;
};

}  // namespace

void lower_precision(Graph& graph, std::int64_t least, double cost,
                     const std::function<double(const Graph&, const Node&)>& seconds) {
    const bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
        return narrow_type(node.precision).has_value();
    });
    if (any) Lowering(graph, least, cost, seconds).run();
}

}  // namespace dlprim
