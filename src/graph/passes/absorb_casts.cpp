// SPDX-License-Identifier: MIT
// absorb_casts: operators that compute in float read and write 16 bits themselves, in place of
// casts around them, where engines for that are faster.
//
//     half -> Cast -> MatMul -> Cast -> half        becomes        half -> MatMul -> half
//
// Engines convert what they read to float, which is exact, and round their results once, so results
// are those of the casts.
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"

#include <algorithm>

namespace dlprim {

namespace {

class CastAbsorption {
  public:
    CastAbsorption(Graph& graph, const std::function<double(const Graph&, const Node&)>& seconds)
        : graph_(graph), seconds_(seconds), readers_(graph.values.size()) {
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
            if (!graph_.nodes[i].removed)
                for (const ValueId input : graph_.nodes[i].inputs)
                    readers_[at(input)].push_back(static_cast<NodeId>(i));
        // What others than nodes see is no node's alone.
        for (const auto& output : graph_.outputs) readers_[at(output.first)].push_back(-1);
        for (const auto& assignment : graph_.assignments)
            readers_[at(assignment.source)].push_back(-1);
        for (const auto& gradient : graph_.gradients) readers_[at(gradient.second)].push_back(-1);
    }

    void run() {
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            const Node& node = graph_.nodes[i];
            if (!node.removed && !node.op->is_view() && node.op->type() != "Cast" &&
                node.op->type() != "Pointwise")
                visit(static_cast<NodeId>(i));
        }
        graph_.remove_dead();
    }

  private:
    /// Casts that a node can do itself: that of an input, or, with input -1, those of its results.
    struct Candidate {
        int input;
        std::vector<NodeId> casts;  ///< of an input one; else by result, with -1 for those without
        double seconds;             ///< that the casts take; 0 if others need them, too
    };

    static std::size_t at(int id) { return static_cast<std::size_t>(id); }
    const Node& node_at(NodeId id) const { return graph_.nodes[at(id)]; }
    bool is_cast(NodeId id) const {
        return id >= 0 && !node_at(id).removed && node_at(id).op->type() == "Cast" &&
               !node_at(id).attrs.boolean("reinterpret");
    }

    std::vector<Candidate> candidates(NodeId id) const {
        std::vector<Candidate> found;
        const Node& node = node_at(id);
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
            const NodeId cast = graph_.value(node.inputs[i]).producer;
            if (!is_cast(cast) || graph_.spec(node.inputs[i]).dtype != DType::f32) continue;
            if (!has_16_bits(graph_.spec(node_at(cast).inputs[0]).dtype)) continue;
            const bool alone = readers_[at(node.inputs[i])].size() == 1;
            found.push_back(
                {static_cast<int>(i), {cast}, alone ? seconds_(graph_, node_at(cast)) : 0});
        }
        Candidate results{-1, {}, 0};
        for (const ValueId output : node.outputs) {
            const NodeId cast = cast_of_result(output);
            results.casts.push_back(cast);
            if (cast >= 0) results.seconds += seconds_(graph_, node_at(cast));
        }
        if (results.seconds > 0) found.push_back(std::move(results));
        return found;
    }

    /// The cast to 16 bits that alone reads a result, or -1.
    NodeId cast_of_result(ValueId output) const {
        if (output == no_value || graph_.spec(output).dtype != DType::f32) return -1;
        const auto& readers = readers_[at(output)];
        if (readers.size() != 1 || !is_cast(readers[0])) return -1;
        return has_16_bits(graph_.spec(node_at(readers[0]).outputs[0]).dtype) ? readers[0] : -1;
    }

    /// The node with the casts whose bits are set in `chosen`.
    Node with(const Node& node, const std::vector<Candidate>& casts, unsigned chosen) const {
        Node changed = node;
        for (std::size_t i = 0; i < casts.size(); ++i) {
            if ((chosen >> i & 1) == 0) continue;
            if (casts[i].input >= 0) {
                changed.inputs[at(casts[i].input)] = node_at(casts[i].casts[0]).inputs[0];
                continue;
            }
            for (std::size_t k = 0; k < node.outputs.size(); ++k)
                if (casts[i].casts[k] >= 0)
                    changed.outputs[k] = node_at(casts[i].casts[k]).outputs[0];
        }
        return changed;
    }

    /// The precision in which products of the node's factors are exact, as the factors have 16
    /// bits.
    Precision exact_precision(const Node& node) const {
        if (node.precision != Precision::fp32 || node.inputs.size() < 2) return node.precision;
        std::vector<TensorSpec> inputs, outputs;
        for (const ValueId id : node.inputs) inputs.push_back(graph_.spec(id));
        for (const ValueId id : node.outputs) outputs.push_back(graph_.spec(id));
        const DType dtype = inputs[0].dtype;
        if (!has_16_bits(dtype) || inputs[1].dtype != dtype ||
            node.op->flops(node.attrs, inputs, outputs) <= 0)
            return node.precision;
        return dtype == DType::f16 ? Precision::fp16 : Precision::bf16;
    }

    void visit(NodeId id) {
        const std::vector<Candidate> casts = candidates(id);
        if (casts.empty() || casts.size() > most) return;
        const Node node = node_at(id);
        unsigned best = 0;
        Precision precision = node.precision;
        double least = 0;
        for (unsigned chosen = 0; chosen < 1U << casts.size(); ++chosen) {
            Node changed = with(node, casts, chosen);
            double others = 0;
            for (std::size_t i = 0; i < casts.size(); ++i)
                if ((chosen >> i & 1) == 0) others += casts[i].seconds;
            for (const Precision each : {node.precision, exact_precision(changed)}) {
                changed.precision = each;
                const double seconds = seconds_(graph_, changed) + others;
                if (chosen != 0 && seconds >= least) continue;
                if (chosen == 0 && each != node.precision) continue;
                least = seconds;
                best = chosen;
                precision = each;
            }
        }
        if (best == 0) return;
        Node changed = with(node, casts, best);
        changed.precision = precision;
        for (std::size_t i = 0; i < casts.size(); ++i) {
            if ((best >> i & 1) == 0) continue;
            if (casts[i].input < 0) {
                for (std::size_t k = 0; k < node.outputs.size(); ++k) {
                    if (casts[i].casts[k] < 0) continue;
                    graph_.nodes[at(casts[i].casts[k])].removed = true;
                    graph_.value(changed.outputs[k]).producer = id;
                }
            } else {
                auto& readers = readers_[at(node.inputs[at(casts[i].input)])];
                readers.erase(std::find(readers.begin(), readers.end(), id));
                readers_[at(changed.inputs[at(casts[i].input)])].push_back(id);
            }
        }
        graph_.nodes[at(id)] = std::move(changed);
    }

    /// Candidates of one node for which all combinations are tried.
    static constexpr std::size_t most = 5;

    Graph& graph_;
    const std::function<double(const Graph&, const Node&)>& seconds_;
    std::vector<std::vector<NodeId>> readers_;  ///< by ValueId
};

}  // namespace

void absorb_casts(Graph& graph, const std::function<double(const Graph&, const Node&)>& seconds) {
    const bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
        return !node.removed && node.op->type() == "Cast";
    });
    if (any) CastAbsorption(graph, seconds).run();
}

}  // namespace dlprim
