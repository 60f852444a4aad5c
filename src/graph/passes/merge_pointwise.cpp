// SPDX-License-Identifier: MIT
// merge_pointwise: chains of Pointwise nodes become one node each, so that what stands between them
// is never written to memory.
#include "engine/pointwise/job.hpp"
#include "engine/pointwise/merge.hpp"

#include "base/text.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"

#include <dlprim/error.hpp>

#include <algorithm>
#include <set>

namespace dlprim {

namespace {

constexpr int max_nodes = 200;          // of a program: registers, and time to compile
constexpr std::size_t max_inputs = 16;  // two kernel parameters each

class Merger {
  public:
    explicit Merger(Graph& graph)
        : graph_(graph), readers_(graph.values.size()), fixed_(graph.values.size(), 0) {
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
            for (ValueId input : graph_.nodes[i].inputs)
                readers_[at(input)].insert(static_cast<NodeId>(i));
        for (const auto& output : graph_.outputs) readers_[at(output.first)].insert(outside);
        for (const auto& loss : graph_.losses) readers_[at(loss.first)].insert(outside);
        for (const auto& gradient : graph_.gradients) readers_[at(gradient.second)].insert(outside);
        for (const auto& assignment : graph_.assignments) {
            readers_[at(assignment.source)].insert(outside);
            readers_[at(assignment.target)].insert(outside);
        }
        // What depends on parameters and literals alone is made once, not at every run.
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

    void run() {
        // In order: by the time a node takes its producer in, that one holds the chain before it.
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
            while (absorb_one(static_cast<NodeId>(i))) {
            }
        graph_.sort();
    }

  private:
    static constexpr NodeId outside = -1;

    static std::size_t at(int id) { return static_cast<std::size_t>(id); }

    static bool is_free(const Node& node) {
        return !node.removed && node.op->type() == "Pointwise" && node.epilogue.empty() &&
               (node.engine.empty() || node.engine_by_type);
    }

    /// Arithmetic of the merged program is that of its parts where all of it is fp32. Single values
    /// (seeds, steps) may be of other types.
    bool is_float32(const Node& node) const {
        bool any = false;
        for (ValueId id : node.inputs) {
            const TensorSpec& spec = graph_.spec(id);
            if (spec.dtype == DType::f32)
                any = true;
            else if (spec.dtype == DType::f64 || spec.shape.numel() != 1)
                return false;
        }
        return any && std::all_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId id) { return graph_.spec(id).dtype == DType::f32; });
    }

    std::vector<Shape> input_shapes(const Node& node) const {
        std::vector<Shape> shapes;
        for (ValueId id : node.inputs) shapes.push_back(graph_.shape(id));
        return shapes;
    }

    static pointwise::Program bound_program(const Node& node) {
        pointwise::Program program = pointwise::parse(node.attrs.text("code"));
        program.inputs =
            static_cast<int>(node.inputs.size());  // a node may have inputs that only shape it
        return pointwise::bind_scalars(program, node.attrs.numbers("scalars"));
    }

    /// Takes one producer into node `id`; false where none can be.
    bool absorb_one(NodeId id) {
        Node& consumer = graph_.nodes[at(id)];
        if (!is_free(consumer) || !is_float32(consumer)) return false;
        for (ValueId value : consumer.inputs) {
            const NodeId made_by = graph_.value(value).producer;
            if (made_by < 0 || readers_[at(value)].size() != 1) continue;
            if (merge(graph_.nodes[at(made_by)], consumer, value)) {
                for (ValueId input : consumer.inputs) {
                    readers_[at(input)].erase(made_by);
                    readers_[at(input)].insert(id);
                }
                return true;
            }
        }
        return false;
    }

    bool merge(Node& producer, Node& consumer, ValueId value) {
        if (!is_free(producer) || !is_float32(producer) || producer.part != consumer.part)
            return false;
        if (producer.outputs.size() != 1) return false;
        if (fixed_[at(value)] && !fixed_[at(consumer.outputs[0])]) return false;
        if (producer.inputs.size() + consumer.inputs.size() > max_inputs + 1) return false;
        const std::vector<Shape> inner_shapes = input_shapes(producer),
                                 outer_shapes = input_shapes(consumer);
        const Shape inner = pointwise::broadcast_shape(inner_shapes, producer.attrs.ints("shape"));
        const Shape outer = pointwise::broadcast_shape(outer_shapes, consumer.attrs.ints("shape"));
        if (inner != outer || graph_.shape(value) != inner) return false;

        // The consumer may read the value at several places: those become one input first.
        pointwise::Program program = bound_program(consumer);
        std::vector<ValueId> inputs;
        program = joined(program, consumer.inputs, inputs);
        const int place =
            static_cast<int>(std::find(inputs.begin(), inputs.end(), value) - inputs.begin());
        const pointwise::Program made = bound_program(producer);
        if (!pointwise::can_merge(made, 0, inner, program, place, outer, inner_shapes))
            return false;

        std::vector<int> consumer_map, producer_map;
        program = pointwise::merge(made, 0, program, place, consumer_map, producer_map);
        std::vector<ValueId> all(at(program.inputs));
        for (std::size_t i = 0; i < inputs.size(); ++i)
            if (consumer_map[i] >= 0) all[at(consumer_map[i])] = inputs[i];
        for (std::size_t i = 0; i < producer.inputs.size(); ++i)
            all[at(producer_map[i])] = producer.inputs[i];
        std::vector<ValueId> distinct;
        program = joined(program, all, distinct);
        int nodes = 0;
        for (const auto& output : program.outputs) nodes += pointwise::node_count(output.value);
        if (nodes > max_nodes || distinct.size() > max_inputs) return false;

        Attrs attrs = consumer.attrs;
        attrs.set("code", pointwise::print(program));
        attrs.set("scalars", Doubles{});
        attrs.set("dtypes", Strings{std::string(name_of(DType::f32))});
        std::vector<Shape> shapes;
        for (ValueId id : distinct) shapes.push_back(graph_.shape(id));
        if (pointwise::broadcast_shape(shapes, attrs.ints("shape")) != outer)
            attrs.set("shape", outer.to_vector());
        if (!same_outputs(consumer, attrs, distinct)) return false;

        consumer.attrs = std::move(attrs);
        consumer.inputs = std::move(distinct);
        consumer.fused.push_back(producer.name);
        consumer.fused.insert(consumer.fused.end(), producer.fused.begin(), producer.fused.end());
        producer.removed = true;
        return true;
    }

    /// The program with equal inputs joined, and those left.
    static pointwise::Program joined(const pointwise::Program& program,
                                     const std::vector<ValueId>& from, std::vector<ValueId>& to) {
        std::vector<int> numbers;
        to.clear();
        for (ValueId id : from) {
            const auto found = std::find(to.begin(), to.end(), id);
            numbers.push_back(static_cast<int>(found - to.begin()));
            if (found == to.end()) to.push_back(id);
        }
        return pointwise::renumber(program, numbers, static_cast<int>(to.size()));
    }

    /// Whether the operator makes of the new attributes and inputs what the node makes now. Also
    /// tells programs that cannot be printed and read again (nested too deep).
    bool same_outputs(const Node& node, const Attrs& attrs,
                      const std::vector<ValueId>& inputs) const {
        std::vector<TensorSpec> specs;
        for (ValueId id : inputs) specs.push_back(graph_.spec(id));
        try {
            const std::vector<TensorSpec> made = node.op->infer(attrs, specs);
            for (std::size_t k = 0; k < made.size(); ++k)
                if (made[k] != graph_.spec(node.outputs.at(k))) return false;
            return made.size() == node.outputs.size();
        } catch (const Error&) {
            return false;
        }
    }

    Graph& graph_;
    std::vector<std::set<NodeId>> readers_;  ///< by ValueId
    std::vector<char> fixed_;                ///< by ValueId
};

}  // namespace

void merge_pointwise(Graph& graph) {
    graph.remove_dead();
    Merger(graph).run();
    graph.remove_dead();
}

}  // namespace dlprim
