// SPDX-License-Identifier: MIT
// Compares a composite's engines with the nodes that it consists of, in a graph of it alone.
#include "plan/whole_nodes.hpp"

#include "base/text.hpp"
#include "engine/disabled.hpp"
#include "graph/operator.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace dlprim {

double WholeNodes::seconds(const Graph& graph, const Node& node, bool whole) const {
    Graph alone;
    alone.training = graph.training;
    alone.precision = node.precision;
    DifferentiateOptions how;
    how.input_gradients = how.seeds_are_inputs = true;
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) {
        Value value;
        value.name = cat("input ", inputs.size());
        value.spec = graph.spec(id);
        value.role = Role::input;
        inputs.push_back(alone.add_value(std::move(value)));
        alone.inputs.push_back(inputs.back());
        if (gradients_ && !is_wanted(graph, id)) how.unwanted.push_back(inputs.back());
    }
    const std::vector<ValueId> made = alone.add(node.op->type(), node.name, inputs, node.attrs);
    alone.outputs.emplace_back(made[0], "output");
    expand_composites(alone, [&](auto&&...) { return whole; });
    if (gradients_ && how.unwanted.size() < inputs.size()) {
        differentiate(alone, how);
        expand_composites(alone, [&](auto&&...) { return whole; });
    }
    alone.remove_dead();
    lower(alone);
    merge_pointwise(alone);
    alone.sort();
    double sum = 0;
    for (const Node& part : alone.nodes)
        if (!part.removed && !part.op->is_view()) sum += least_seconds(context_, alone, part, {});
    return sum;
}

bool WholeNodes::is_wanted(const Graph& graph, ValueId value) const {
    if (!is_float(graph.spec(value).dtype)) return false;
    std::set<ValueId> seen;
    std::vector<ValueId> left{value};
    while (!left.empty()) {
        const ValueId id = left.back();
        left.pop_back();
        if (!seen.insert(id).second) continue;
        const Value& from = graph.value(id);
        const bool refused = std::find(gradients_->unwanted.begin(), gradients_->unwanted.end(),
                                       id) != gradients_->unwanted.end();
        if (from.role == Role::parameter && from.trainable && !refused) return true;
        if (from.role == Role::input && gradients_->input_gradients && !refused) return true;
        if (from.producer < 0) continue;
        const auto& inputs = graph.nodes[static_cast<std::size_t>(from.producer)].inputs;
        left.insert(left.end(), inputs.begin(), inputs.end());
    }
    return false;
}

bool WholeNodes::decide(const Graph& graph, const Node& node, const Problem& problem) const {
    const Traits& device = context_.traits();
    if (!node.engine.empty()) {
        const Engine* engine = EngineRegistry::instance().find(node.engine);
        if (engine == nullptr || engine->op() != problem.op) return false;
        // The planner says why an engine that is forced by name does not apply.
        return !node.engine_by_type ||
               (engine->on_host() == device.host && usable(context_, *engine, problem));
    }
    // Of a graph that is differentiated, composites that are still whole were found to pay.
    if (!graph.gradients.empty()) return std::isfinite(least_seconds(context_, graph, node, {}));
    // On CPUs products with wide vectors and packed operands are faster.
    if (device.host || device.wide_vectors) return false;
    const double whole = seconds(graph, node, true);
    return std::isfinite(whole) && whole <= seconds(graph, node, false);
}

bool WholeNodes::pays(const Graph& graph, const Node& node) {
    const Problem problem = problem_of(context_.traits(), graph, node, {});
    if (!node.engine.empty()) return decide(graph, node, problem);
    const auto known = known_.find(problem);
    if (known != known_.end()) return known->second;
    return known_[problem] = decide(graph, node, problem);
}

std::vector<Problem> WholeNodes::expanded() const {
    std::vector<Problem> problems;
    for (const auto& [problem, pays] : known_)
        if (!pays) problems.push_back(problem);
    return problems;
}

}  // namespace dlprim
