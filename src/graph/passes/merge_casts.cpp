// SPDX-License-Identifier: MIT
// merge_casts: pointwise nodes read and write 16 bits themselves, in place of casts around them.
//
//     half -> Cast -> Pointwise -> Cast -> half        becomes        half -> Pointwise -> half
//
// Their kernels convert what they read to float, which is exact, and round what they store once, so
// results are those of the casts.
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"

#include <algorithm>

namespace dlprim {

namespace {

class CastMerge {
  public:
    explicit CastMerge(Graph& graph) : graph_(graph), readers_(graph.values.size()) {
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
            if (!graph_.nodes[i].removed)
                for (const ValueId input : graph_.nodes[i].inputs)
                    readers_[at(input)].push_back(static_cast<NodeId>(i));
        // What others than nodes see keeps its type.
        for (const auto& output : graph_.outputs) readers_[at(output.first)].push_back(none);
        for (const auto& assignment : graph_.assignments)
            readers_[at(assignment.source)].push_back(none);
        for (const auto& gradient : graph_.gradients) readers_[at(gradient.second)].push_back(none);
    }

    void run() {
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            const Node& node = graph_.nodes[i];
            if (node.removed || node.op->type() != "Cast" || node.attrs.boolean("reinterpret"))
                continue;
            const DType from = graph_.spec(node.inputs[0]).dtype;
            const DType to = graph_.spec(node.outputs[0]).dtype;
            if (has_16_bits(from) && to == DType::f32)
                read_narrow(node.inputs[0], node.outputs[0]);
            else if (from == DType::f32 && has_16_bits(to))
                write_narrow(static_cast<NodeId>(i));
        }
        graph_.remove_dead();
    }

  private:
    static constexpr NodeId none = -1;
    static std::size_t at(int id) { return static_cast<std::size_t>(id); }
    Node& node_at(NodeId id) { return graph_.nodes[at(id)]; }
    bool is_pointwise(NodeId id) const {
        return id != none && graph_.nodes[at(id)].op->type() == "Pointwise";
    }
    /// Whether the node's result is its first input in another shape, or the beginning of it.
    bool is_part(NodeId id) const {
        if (id == none) return false;
        const Node& node = graph_.nodes[at(id)];
        return node.op->is_view() || node.op->is_beginning(node, graph_.shape(node.inputs[0]));
    }

    /// Whether only pointwise nodes read the value, or parts of it.
    bool may_change(ValueId id) const {
        return std::all_of(readers_[at(id)].begin(), readers_[at(id)].end(), [&](NodeId reader) {
            return is_pointwise(reader) ||
                   (is_part(reader) && may_change(graph_.nodes[at(reader)].outputs[0]));
        });
    }

    void set_type(ValueId id, DType dtype) {
        graph_.value(id).spec.dtype = dtype;
        for (const NodeId reader : readers_[at(id)])
            if (is_part(reader)) set_type(node_at(reader).outputs[0], dtype);
    }

    /// Lets the readers of `wide`, as far as they can, read `narrow`.
    void read_narrow(ValueId narrow, ValueId wide) {
        const std::vector<NodeId> readers = readers_[at(wide)];
        for (const NodeId reader : readers) {
            if (!is_pointwise(reader)) {
                if (!is_part(reader) || !may_change(node_at(reader).outputs[0])) continue;
                set_type(node_at(reader).outputs[0], graph_.spec(narrow).dtype);
            }
            std::replace(node_at(reader).inputs.begin(), node_at(reader).inputs.end(), wide,
                         narrow);
            auto& left = readers_[at(wide)];
            left.erase(std::find(left.begin(), left.end(), reader));
            readers_[at(narrow)].push_back(reader);
        }
    }

    /// Lets the pointwise node that makes the cast's input write its result.
    void write_narrow(NodeId cast) {
        const ValueId wide = node_at(cast).inputs[0], narrow = node_at(cast).outputs[0];
        const NodeId maker = graph_.value(wide).producer;
        if (!is_pointwise(maker) || readers_[at(wide)].size() != 1) return;
        std::replace(node_at(maker).outputs.begin(), node_at(maker).outputs.end(), wide, narrow);
        graph_.value(narrow).producer = maker;
        node_at(cast).removed = true;
    }

    Graph& graph_;
    std::vector<std::vector<NodeId>> readers_;  ///< by ValueId
};

}  // namespace

void merge_casts(Graph& graph) {
    const bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
        return !node.removed && node.op->type() == "Cast";
    });
    if (any) CastMerge(graph).run();
}

}  // namespace dlprim
