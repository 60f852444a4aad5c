// SPDX-License-Identifier: MIT
// Builds the problem that a node poses to engines, with layouts and precision, compares problems,
// and estimates what they cost: the node itself, a fusion, and conversions between layouts.
#include "plan/choose.hpp"

#include "engine/disabled.hpp"
#include "engine/laid_out.hpp"
#include "engine/pointwise/job.hpp"
#include "engine/storage.hpp"
#include "graph/operator.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <string_view>
#include <tuple>

namespace dlprim {

namespace {

bool same_operands(const std::vector<Operand>& a, const std::vector<Operand>& b) {
    const auto members = [](const Operand& operand) {
        return std::tie(operand.shape, operand.dtype, operand.constant, operand.layout);
    };
    return std::equal(
        a.begin(), a.end(), b.begin(), b.end(),
        [&](const Operand& one, const Operand& other) { return members(one) == members(other); });
}

}  // namespace

bool SameProblem::operator()(const Problem& a, const Problem& b) const {
    return a.op == b.op && a.phase == b.phase && a.precision == b.precision &&
           a.by_itself == b.by_itself && same_operands(a.inputs, b.inputs) &&
           same_operands(a.outputs, b.outputs) && a.epilogue == b.epilogue && a.attrs == b.attrs;
}

std::size_t ProblemHash::operator()(const Problem& problem) const noexcept {
    std::size_t hash = std::hash<std::string_view>()(problem.op) + problem.epilogue.size();
    const auto mix = [&](std::int64_t number) {
        hash = (hash ^ static_cast<std::size_t>(number)) * 0x9e3779b97f4a7c15;
    };
    for (const auto* operands : {&problem.inputs, &problem.outputs})
        for (const Operand& operand : *operands)
            for (int d = 0; d < operand.shape.rank(); ++d) mix(operand.shape[d]);
    return hash ^ hash >> 32;
}

Problem problem_of(const Traits& device, const Graph& graph, const Node& node,
                   const std::vector<char>& constant) {
    Problem problem;
    problem.op = std::string(node.op->problem_type());
    problem.phase = graph.training || !graph.gradients.empty() ? Phase::training : Phase::inference;
    problem.by_itself = graph.training && graph.gradients.empty();
    problem.attrs = node.attrs;
    problem.epilogue = node.epilogue;
    const auto operand = [&](ValueId id) {
        Operand result;
        result.shape = graph.shape(id);
        result.dtype = graph.spec(id).dtype;
        const auto i = static_cast<std::size_t>(id);
        result.constant = i < constant.size() && constant[i];
        return result;
    };
    for (ValueId id : node.inputs) problem.inputs.push_back(operand(id));
    for (ValueId id : node.outputs) problem.outputs.push_back(operand(id));
    // Without an engine for fp16 or bf16, tf32 is the next choice: it rounds no more than they do.
    const bool narrow = node.precision == Precision::fp16 || node.precision == Precision::bf16;
    for (const Precision precision : {node.precision, narrow ? Precision::tf32 : Precision::fp32}) {
        if (precision == Precision::fp32) break;
        problem.precision = precision;
        for (const Engine* engine : EngineRegistry::instance().of(problem.op, device.host))
            if (engine->computes_in(precision) && engine->is_applicable(device, problem))
                return problem;
    }
    problem.precision = Precision::fp32;
    return problem;
}

std::vector<char> constant_values(const Graph& graph) {
    std::vector<char> constant(graph.values.size(), 0);
    for (std::size_t i = 0; i < graph.values.size(); ++i) {
        const Role role = graph.values[i].role;
        constant[i] = role == Role::parameter || role == Role::constant;
    }
    for (const Assignment& assignment : graph.assignments) {
        const Value& target = graph.value(assignment.target);
        constant[static_cast<std::size_t>(assignment.target)] = 0;
        if (target.role != Role::block) continue;
        for (const auto& [id, offset] : graph.block_offsets())
            constant[static_cast<std::size_t>(id)] = 0;
    }
    for (const Node& node : graph.nodes) {
        // Scalars that are arguments differ from run to run.
        const bool all = !node.attrs.has(pointwise::arguments_attr) &&
                         std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
                             return constant[static_cast<std::size_t>(id)] != 0;
                         });
        for (ValueId id : node.outputs) constant[static_cast<std::size_t>(id)] = all;
    }
    return constant;
}

double conversion_seconds(const Traits& device, const Operand& operand, const Layout& from,
                          const Layout& to) {
    if (same_memory(operand.shape, from, to)) return 0;
    const double bytes = static_cast<double>(storage_bytes(operand.shape, operand.dtype, from)) +
                         static_cast<double>(storage_bytes(operand.shape, operand.dtype, to));
    // As Reorder's engines estimate it: through tiles in local memory on GPUs.
    const double share = device.host || device.wide_vectors ? 0.5 : 0.75;
    return bytes / (std::max(1.0, device.gbytes_per_s) * share * 1e9) + device.launch_us * 1e-6;
}

std::pair<double, double> FusedNodes::fastest(const Node& node, const Problem& fused,
                                              const Problem& alone) const {
    const Traits& device = context_.traits();
    const double never = std::numeric_limits<double>::infinity();
    std::pair<double, double> least{never, never};
    for (const Engine* engine : EngineRegistry::instance().of(fused.op, device.host)) {
        // If an engine is forced on the node by name, only that engine counts.
        if (!node.engine.empty() && !node.engine_by_type && engine->name() != node.engine) continue;
        const auto best = [&](const Problem& problem, double& seconds) {
            if (!usable(context_, *engine, problem)) return;
            const Problem laid = with_layouts(problem, engine->layouts(device, problem).front());
            seconds = std::min(
                seconds, engine->estimate(device, laid, engine->default_tuning(device, laid)));
        };
        best(fused, least.first);
        best(alone, least.second);
    }
    return least;
}

bool FusedNodes::pays(const Graph& graph, const Node& node) {
    const Traits& device = context_.traits();
    const Problem fused = problem_of(device, graph, node, {});
    const bool any_engine = node.engine.empty();
    if (any_engine) {
        const auto of_problem = known_.find(fused);
        if (of_problem != known_.end())
            if (const auto known = of_problem->second.find(node.precision);
                known != of_problem->second.end())
                return known->second;
    }
    Node without = node;
    without.epilogue.pop_back();
    if (node.epilogue.back().kind == EpilogueStage::Kind::add) without.inputs.pop_back();
    const auto [fused_seconds, alone_seconds] =
        fastest(node, fused, problem_of(device, graph, without, {}));
    // Unfused, the stage is one more launch that reads and writes the output.
    const double output_bytes =
        static_cast<double>(storage_bytes(fused.outputs[0].shape, fused.outputs[0].dtype, {}));
    const double stage =
        2 * output_bytes / (std::max(1.0, device.gbytes_per_s) * 1e9) + device.launch_us * 1e-6;
    const bool pays = fused_seconds != std::numeric_limits<double>::infinity() &&
                      fused_seconds <= alone_seconds + stage;
    if (any_engine) known_[fused][node.precision] = pays;
    return pays;
}

double least_seconds(ContextImpl& context, const Graph& graph, const Node& node,
                     const std::vector<char>& constant) {
    const Traits& device = context.traits();
    const Problem problem = problem_of(device, graph, node, constant);
    const auto best = [&](bool forced) {
        double seconds = std::numeric_limits<double>::infinity();
        for (const Engine* engine : EngineRegistry::instance().of(problem.op, device.host)) {
            if (forced && engine->name() != node.engine) continue;
            if (!usable(context, *engine, problem)) continue;
            for (const LayoutChoice& layouts : engine->layouts(device, problem)) {
                const Problem laid = with_layouts(problem, layouts);
                seconds = std::min(
                    seconds, engine->estimate(device, laid, engine->default_tuning(device, laid)));
            }
        }
        return seconds;
    };
    if (node.engine.empty()) return best(false);
    if (!node.engine_by_type) return best(true);
    // An engine forced on an operator type is kept for every node to which it applies in float.
    Problem plain = problem;
    for (auto* operands : {&plain.inputs, &plain.outputs})
        for (Operand& operand : *operands)
            if (is_activation_type(operand.dtype)) operand.dtype = DType::f32;
    const Engine* engine = EngineRegistry::instance().find(node.engine);
    return best(engine != nullptr && engine->op() == plain.op && engine->on_host() == device.host &&
                usable(context, *engine, plain));
}

bool stores_narrow(const Traits& device) {
    return !device.host && !device.wide_vectors;
}

}  // namespace dlprim
