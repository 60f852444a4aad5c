// SPDX-License-Identifier: MIT
// fuse_epilogues: fuses activations and residual sums into the operator that makes their input.
// Views between the two do not matter, since all elements keep their places:
//
//     product -> reshape -> gelu        becomes        product + gelu -> reshape
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"

#include <optional>

namespace dlprim {

namespace {

class EpilogueFusion {
  public:
    EpilogueFusion(Graph& graph, const std::function<bool(const Graph&, const Node&)>& accepts)
        : graph_(graph), accepts_(accepts), uses_(graph.values.size(), 0) {
        for (const Node& node : graph_.nodes)
            if (!node.removed)
                for (ValueId input : node.inputs) ++uses_[static_cast<std::size_t>(input)];
        for (const auto& output : graph_.outputs) ++uses_[static_cast<std::size_t>(output.first)];
        for (const auto& assignment : graph_.assignments)
            ++uses_[static_cast<std::size_t>(assignment.source)];
        for (const auto& gradient : graph_.gradients)
            ++uses_[static_cast<std::size_t>(gradient.second)];
    }

    void run() {
        // Nodes are sorted, so a sum is tried before the activation that follows it.
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            const Node& node = graph_.nodes[i];
            if (node.removed) continue;
            const std::optional<EpilogueStage> stage = node.op->as_epilogue(node.attrs);
            if (!stage) continue;
            if (stage->kind == EpilogueStage::Kind::activation)
                fuse_activation(i, *stage);
            else
                fuse_sum(i, *stage);
        }
        graph_.sort();
    }

  private:
    /// The node that makes the elements of a value, and the last view behind it.
    struct Maker {
        NodeId node = -1;
        NodeId view = -1;  ///< -1: there is none
    };

    Node& node_at(NodeId id) { return graph_.nodes[static_cast<std::size_t>(id)]; }

    /// Who makes `id`: not a view. The node is -1 for values of the graph's own.
    Maker maker_of(ValueId id) {
        Maker maker{graph_.value(id).producer, -1};
        while (maker.node >= 0 && node_at(maker.node).op->is_view()) {
            if (maker.view < 0) maker.view = maker.node;
            maker.node = graph_.value(node_at(maker.node).inputs[0]).producer;
        }
        return maker;
    }

    /// The same, if nobody but the views and `reader` reads the elements, and no engine is forced
    /// on `reader`.
    std::optional<Maker> sole_maker(ValueId id, const Node& reader) {
        if (!reader.engine.empty() && !reader.engine_by_type) return std::nullopt;
        const Maker maker = maker_of(id);
        if (maker.node < 0) return std::nullopt;
        for (ValueId at = id;; at = node_at(graph_.value(at).producer).inputs[0]) {
            if (uses_[static_cast<std::size_t>(at)] != 1) return std::nullopt;
            const Node& from = node_at(graph_.value(at).producer);
            if (from.removed || from.outputs.size() != 1 || from.part != reader.part)
                return std::nullopt;
            if (graph_.value(at).producer == maker.node) return maker;
        }
    }

    /// Fuses `reader` into its maker as the given stage, if an engine supports the fused node.
    bool attach(const Maker& maker, std::size_t reader_index, const EpilogueStage& stage,
                ValueId extra_input) {
        Node fused = node_at(maker.node);
        fused.epilogue.push_back(stage);
        if (extra_input != no_value) {
            fused.epilogue.back().operand = static_cast<int>(fused.inputs.size());
            fused.inputs.push_back(extra_input);
        }
        if (!accepts_(graph_, fused)) return false;
        Node& reader = graph_.nodes[reader_index];
        fused.fused.push_back(reader.name);
        fused.recompute = fused.recompute || reader.recompute;
        if (maker.view < 0) fused.outputs = reader.outputs;
        node_at(maker.node) = std::move(fused);
        const NodeId last = maker.view < 0 ? maker.node : maker.view;
        node_at(last).outputs = reader.outputs;
        graph_.value(reader.outputs[0]).producer = last;
        reader.removed = true;
        return true;
    }

    void fuse_activation(std::size_t index, const EpilogueStage& stage) {
        const Node& reader = graph_.nodes[index];
        const std::optional<Maker> maker = sole_maker(reader.inputs[0], reader);
        if (maker && !ends_in_activation(node_at(maker->node)))
            attach(*maker, index, stage, no_value);
    }

    void fuse_sum(std::size_t index, const EpilogueStage& stage) {
        const Node& reader = graph_.nodes[index];
        const ValueId a = reader.inputs[0], b = reader.inputs[1];
        if (a == b || graph_.spec(a) != graph_.spec(b)) return;
        // The sum is fused into the later of the two makers, which can read the result of the
        // earlier.
        const bool b_later = maker_of(b).node > maker_of(a).node;
        const ValueId into = b_later ? b : a;
        ValueId other = b_later ? a : b;
        const std::optional<Maker> maker = sole_maker(into, reader);
        if (!maker || !node_at(maker->node).epilogue.empty()) return;
        const Shape shape = graph_.shape(node_at(maker->node).outputs[0]);
        if (graph_.shape(other) == shape) {
            attach(*maker, index, stage, other);
            return;
        }
        const Part part = reader.part;
        other = graph_.reshape(reader.name + "/shape", other, shape);
        graph_.nodes.back().part = part;
        uses_.resize(graph_.values.size(), 1);
        if (!attach(*maker, index, stage, other)) graph_.nodes.back().removed = true;
    }

    static bool ends_in_activation(const Node& node) {
        return !node.epilogue.empty() &&
               node.epilogue.back().kind == EpilogueStage::Kind::activation;
    }

    Graph& graph_;
    const std::function<bool(const Graph&, const Node&)>& accepts_;
    std::vector<int> uses_;
};

}  // namespace

void fuse_epilogues(Graph& graph, const std::function<bool(const Graph&, const Node&)>& accepts) {
    EpilogueFusion(graph, accepts).run();
}

}  // namespace dlprim
