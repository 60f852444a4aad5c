// SPDX-License-Identifier: MIT
// expand_composites: replaces composites by the nodes that they consist of, and adds casts to float
// around operators that need them.
#include "base/text.hpp"
#include "engine/engine.hpp"
#include "graph/operator.hpp"
#include "graph/passes/compute_in_float.hpp"
#include "graph/passes/passes.hpp"
#include "graph/passes/rewrite.hpp"

#include <algorithm>

namespace dlprim {

namespace {

/// Passes the engine that is forced on `node` on to those replacements whose type it computes. If
/// there are none, passes it on to all: they may be replaced again, and if not, the planner reports
/// that the engine does not apply.
void hand_on_engine(Graph& graph, const Node& node, std::size_t first_new) {
    if (node.engine.empty()) return;
    const Engine* engine = EngineRegistry::instance().find(node.engine);
    const auto computed = [&](const Node& made) {
        return engine != nullptr && engine->op() == made.op->problem_type();
    };
    const bool any = std::any_of(graph.nodes.begin() + static_cast<std::ptrdiff_t>(first_new),
                                 graph.nodes.end(), computed);
    for (std::size_t k = first_new; k < graph.nodes.size(); ++k) {
        Node& made = graph.nodes[k];
        if (made.op->is_view() || (any && !computed(made))) continue;
        made.engine = node.engine;
        made.engine_from = node.engine_from;
        made.engine_by_type = node.engine_by_type;
    }
}

/// Calls the rule and adds the node's name to its errors.
bool apply(const RewriteRule& rule, Graph& graph, const Node& node, std::vector<ValueId>& outputs) {
    try {
        return rule(graph, node, outputs);
    } catch (const Error& error) {
        if (std::string_view(error.what()).starts_with('[')) throw;
        fail(error.kind(), "[", node.type(), " '", node.name, "'] ", error.what());
    }
}

/// Takes a node out of the array, which moves when nodes are added. What rules may see of it there
/// stays: what it is and what it reads and makes.
Node taken(Node& node) {
    Node whole = std::move(node);
    node = Node();
    node.op = whole.op;
    node.part = whole.part;
    node.inputs = whole.inputs;
    node.outputs = whole.outputs;
    return whole;
}

}  // namespace

void rewrite_nodes(Graph& graph, const RewriteRule& rule) {
    // New nodes are appended, so this loop visits them too.
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        if (graph.nodes[i].removed) continue;
        Node node = taken(graph.nodes[i]);
        const std::size_t first_new = graph.nodes.size();
        std::vector<ValueId> outputs;
        graph.release_name(node.name);
        if (!apply(rule, graph, node, outputs)) {
            graph.nodes[i] = std::move(node);
            continue;
        }
        require(outputs.size() == node.outputs.size(), "[", node.type(), " '", node.name,
                "'] was rewritten with another number of outputs");
        bool named =
            false;  // the first node that asked for the name keeps the name that the user knows
        for (std::size_t k = first_new; k < graph.nodes.size(); ++k) {
            named = named || graph.nodes[k].name == node.name;
            if (!named && graph.nodes[k].name.starts_with(node.name + "#")) {
                graph.nodes[k].name = node.name;
                named = true;
            }
            if (graph.nodes[k].op == node.op) graph.nodes[k].alias = node.alias;
            graph.nodes[k].frozen = node.frozen;
            graph.nodes[k].recompute = node.recompute;
            graph.nodes[k].part = node.part;
            graph.nodes[k].precision = node.precision;
        }
        hand_on_engine(graph, node, first_new);
        for (std::size_t k = 0; k < outputs.size(); ++k) {
            if (outputs[k] == no_value) continue;
            graph.replace_uses(node.outputs[k], outputs[k]);
            // The new value takes the name that the user knows, unless it already has a name of its
            // own.
            Value& made = graph.value(outputs[k]);
            if (made.role == Role::intermediate && made.producer >= static_cast<NodeId>(first_new))
                made.name = graph.value(node.outputs[k]).name;
        }
        graph.nodes[i].removed = true;
    }
    graph.sort();
}

void expand_composites(Graph& graph, const WholePays& whole_pays) {
    ComputeInFloat in_float;
    rewrite_nodes(graph, [&](Graph& g, const Node& node, std::vector<ValueId>& outputs) {
        if (in_float.rewrite(g, node, outputs)) return true;
        if (whole_pays && node.op->may_stay_whole() && whole_pays(g, node)) return false;
        return node.op->expand(g, node, outputs);
    });
    ComputeInFloat::assign_parameters(graph);
}

}  // namespace dlprim
