// SPDX-License-Identifier: MIT
// merge_pointwise: merges each chain of Pointwise nodes into one node, so that intermediate values
// are never written to memory.
#include "graph/passes/passes.hpp"
#include "graph/passes/pointwise_nodes.hpp"

namespace dlprim {

namespace {

/// Merges the producer of one input into node `id`, if `id` is its only reader. Returns false if
/// there is no such producer.
bool absorb_one(Graph& graph, PointwiseNodes& nodes, NodeId id) {
    if (!nodes.is_free(id)) return false;
    const Node& consumer = graph.nodes[static_cast<std::size_t>(id)];
    for (ValueId value : consumer.inputs) {
        const NodeId made_by = graph.value(value).producer;
        if (made_by < 0 || nodes.readers(value).size() != 1 || !nodes.is_free(made_by)) continue;
        const Node& producer = graph.nodes[static_cast<std::size_t>(made_by)];
        if (producer.part != consumer.part || producer.outputs.size() != 1) continue;
        std::map<ValueId, NodeId> wanted;
        for (ValueId input : producer.inputs) wanted[input] = id;
        if (nodes.keeps_more(made_by, wanted)) continue;
        auto merged = nodes.taken_in(id, nodes.draft_of(id), value);
        if (!merged) continue;
        nodes.change(id, std::move(*merged), made_by);
        nodes.remove(made_by);
        return true;
    }
    return false;
}

}  // namespace

void merge_pointwise(Graph& graph) {
    graph.remove_dead();
    PointwiseNodes nodes(graph);
    // Nodes are visited in order, so a producer has absorbed its own chain before it is absorbed.
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        while (absorb_one(graph, nodes, static_cast<NodeId>(i))) {
        }
    graph.sort();
    graph.remove_dead();
}

}  // namespace dlprim
