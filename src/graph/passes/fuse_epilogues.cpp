// SPDX-License-Identifier: MIT
// fuse_epilogues: fuses activations and residual sums into the operator that makes their input.
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
    /// The node that makes `id`, if `reader` is its only reader and no engine is forced on
    /// `reader`.
    Node* sole_producer(ValueId id, const Node& reader) {
        const NodeId producer = graph_.value(id).producer;
        if (producer < 0 || uses_[static_cast<std::size_t>(id)] != 1) return nullptr;
        if (!reader.engine.empty() && !reader.engine_by_type) return nullptr;
        Node& node = graph_.nodes[static_cast<std::size_t>(producer)];
        return node.removed || node.outputs.size() != 1 || node.part != reader.part ? nullptr
                                                                                    : &node;
    }

    /// Fuses `reader` into `producer` as the given stage, if an engine supports the fused node.
    bool attach(Node& producer, std::size_t reader_index, const EpilogueStage& stage,
                ValueId extra_input) {
        Node& reader = graph_.nodes[reader_index];
        Node fused = producer;
        fused.epilogue.push_back(stage);
        if (extra_input != no_value) {
            fused.epilogue.back().operand = static_cast<int>(fused.inputs.size());
            fused.inputs.push_back(extra_input);
        }
        if (!accepts_(graph_, fused)) return false;
        fused.fused.push_back(reader.name);
        fused.outputs = reader.outputs;
        graph_.value(reader.outputs[0]).producer = graph_.value(producer.outputs[0]).producer;
        producer = std::move(fused);
        reader.removed = true;
        return true;
    }

    void fuse_activation(std::size_t index, const EpilogueStage& stage) {
        const Node& reader = graph_.nodes[index];
        Node* producer = sole_producer(reader.inputs[0], reader);
        if (producer == nullptr || ends_in_activation(*producer)) return;
        attach(*producer, index, stage, no_value);
    }

    void fuse_sum(std::size_t index, const EpilogueStage& stage) {
        const Node& reader = graph_.nodes[index];
        const ValueId a = reader.inputs[0], b = reader.inputs[1];
        if (a == b || graph_.spec(a) != graph_.spec(b)) return;
        // The sum is fused into the later of the two producers, which can read the result of the
        // earlier.
        const bool b_later = graph_.value(b).producer > graph_.value(a).producer;
        const ValueId into = b_later ? b : a, other = b_later ? a : b;
        Node* producer = sole_producer(into, reader);
        if (producer == nullptr || !producer->epilogue.empty()) return;
        attach(*producer, index, stage, other);
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
