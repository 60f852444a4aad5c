// SPDX-License-Identifier: MIT
// make_plan: passes for the device, choice of engines, schedule, memory, launches, programs.
#include "plan/make_plan.hpp"

#include "base/text.hpp"
#include "engine/disabled.hpp"
#include "engine/plugin/load_engines.hpp"
#include "graph/passes/pipeline.hpp"
#include "plan/chain_program.hpp"
#include "plan/chains.hpp"
#include "plan/choose.hpp"
#include "plan/compile_stage.hpp"
#include "plan/engine_failed.hpp"
#include "plan/gradient_marks.hpp"
#include "plan/joined_steps.hpp"
#include "plan/launch_schedule.hpp"
#include "plan/memory.hpp"
#include "plan/recompute.hpp"
#include "plan/steps.hpp"
#include "plan/trust/trust.hpp"
#include "plan/tune.hpp"
#include "plan/whole_nodes.hpp"
#include "runtime/access.hpp"
#include "runtime/program_builds.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <map>
#include <span>

namespace dlprim {

namespace {

bool in_chain(const std::vector<ChainRange>& chains, std::size_t step) {
    return std::any_of(chains.begin(), chains.end(), [&](const ChainRange& chain) {
        return chain.first <= step && step < chain.last;
    });
}

/// Sets the places of values.
void take_memory(Plan& plan, MemoryPlan memory, const Graph& graph,
                 const LaunchSchedule& schedule) {
    plan.slabs = std::move(memory.slabs);
    plan.blocks = std::move(memory.blocks);
    plan.externals = std::move(memory.externals);
    plan.literals = std::move(memory.literals);
    plan.setup_found = std::move(memory.setup_found);
    plan.kept = std::move(memory.kept);
    plan.peak_bytes = memory.peak_bytes;
    plan.setup_peak_bytes = memory.setup_peak_bytes;
    plan.memory = std::move(memory.report);
    plan.memory_map = std::move(memory.map);
    plan.places.resize(graph.values.size());
    for (std::size_t i = 0; i < graph.values.size(); ++i) {
        if (schedule.native[i] < 0) continue;
        const int plain = schedule.find(static_cast<ValueId>(i), Layout::plain());
        if (plain >= 0) plan.places[i] = schedule.place(plain);
    }
}

/// Gives each chain its program, and returns those that are to be compiled. Steps of a chain whose
/// program cannot be made are launched one by one.
PendingPrograms add_chain_programs(ContextImpl& device, Plan& plan) {
    const NotedBuilds noted;
    for (ChainRange& chain : plan.chains) try {
            const std::span<const Step> steps(plan.steps);
            chain.program =
                ChainProgram::of(device, steps.subspan(chain.first, chain.last - chain.first));
        } catch (const Error& error) {
            log(LogLevel::warning, cat("steps are launched one by one: ", error.what()));
        }
    return noted.programs();
}

/// Adds the steps, with compiled programs. Throws EngineFailed.
void add_steps(Plan& plan, ContextImpl& device, const Graph& graph,
               const std::vector<Choice>& choices, const LaunchSchedule& schedule,
               const PlanOptions& options) {
    StepBuilder builder(device, graph, choices, schedule, options.build);
    const bool chains = options.chains && options.build && may_have_chains(device.traits()) &&
                        std::all_of(schedule.items.begin(), schedule.items.end(),
                                    [](const Item& item) { return item.part == Part::forward; });
    const bool checks = options.check_engines != EngineChecks::none && options.build &&
                        !BuildsLater::wanted() && !device.is_described() && checks_engines();
    std::vector<EngineUse> uses;
    if (checks) builder.note_uses(&uses);
    std::vector<BuiltStep> setup, run;
    std::map<const Launch*, PendingPrograms> known;  // steps of the same work share a launch
    for (std::size_t i = 0; i < schedule.items.size(); ++i) {
        const NotedBuilds noted;
        const std::size_t before = uses.size();
        Step step = builder.build(schedule.items[i]);
        if (uses.size() > before) uses.back().programs = noted.programs();
        const auto [its, is_new] = known.try_emplace(step.launch.get());
        if (is_new) its->second = noted.programs();
        (i < schedule.setup ? setup : run).push_back({std::move(step), its->second});
    }
    if (joins_steps(device)) join_steps(device, run, plan.externals);
    std::vector<PendingPrograms> programs;  // by step, of setup first
    for (const auto& [built, steps] : {std::pair(&setup, &plan.setup), {&run, &plan.steps}})
        for (BuiltStep& each : *built) {
            steps->push_back(std::move(each.step));
            programs.push_back(std::move(each.programs));
        }
    PendingPrograms of_chains;
    if (chains) {
        plan.chains = find_chains(plan.steps);
        of_chains = add_chain_programs(device, plan);
    }
    // If the caller postpones all builds, it inspects the plan and runs little of it.
    if (options.build && !BuildsLater::wanted()) {
        CompileStage stage(device, options);
        stage.add_chains(of_chains);
        for (std::size_t i = 0; i < plan.setup.size(); ++i) stage.add(plan.setup[i], programs[i]);
        for (std::size_t i = 0; i < plan.steps.size(); ++i)
            if (!in_chain(plan.chains, i))
                stage.add(plan.steps[i], programs[plan.setup.size() + i]);
        stage.run();
    }
    if (checks) {
        for (EngineUse& use : uses) use.any_size = options.check_engines == EngineChecks::kinds;
        CheckedEngines checked = check_engines(device, uses);
        refuse_distrusted(std::move(checked.wrong));
        plan.unchecked = std::move(checked.later);
    }
}

/// Plans memory. Where steps are joined, small packings are gathered first. Their results live
/// longer then, so fewer are gathered, or none, if the peak would grow by more than a 64th.
MemoryPlan plan_memory_and_packings(ContextImpl& device, const Graph& graph,
                                    const std::vector<char>& constant, LaunchSchedule& schedule,
                                    const PlanOptions& options) {
    if (!joins_steps(device))
        return plan_memory(device.traits(), graph, constant, schedule, options);
    const LaunchSchedule scheduled = schedule;
    MemoryPlan memory = plan_memory(device.traits(), graph, constant, schedule, options);
    const std::uint64_t limit =
        options.memory_limit > 0 ? options.memory_limit : device.traits().global_bytes;
    PlanOptions bounded = options;
    bounded.memory_limit = std::min(limit, memory.setup_peak_bytes + memory.setup_peak_bytes / 64);
    std::uint64_t most_bytes = small_packing_bytes(device.traits());
    for (int attempt = 0; attempt < 6; ++attempt, most_bytes /= 2) {
        LaunchSchedule gathered = scheduled;
        if (!gather_packings(graph, gathered, most_bytes)) break;
        try {
            memory = plan_memory(device.traits(), graph, constant, gathered, bounded);
            schedule = std::move(gathered);
            break;
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::out_of_memory) throw;
        }
    }
    return memory;
}

/// One attempt to plan. Throws EngineFailed.
std::unique_ptr<Plan> try_plan(ContextImpl& device, Graph graph, const PlanOptions& options) {
    auto plan = std::make_unique<Plan>();
    std::vector<char> constant;  // empty while passes run, because the graph is not complete
    FitOptions fit{device.traits(), options.engines, options.fuse};
    FusedNodes fused(device);
    WholeNodes whole(device);
    fit.whole_pays = [&](const Graph& g, const Node& node) { return whole.pays(g, node); };
    fit.fused_node_pays = [&](const Graph& g, const Node& node) { return fused.pays(g, node); };
    if (!device.is_host())
        fit.joined_seconds = [&](const Graph& g, const Node& node) {
            return least_seconds(device, g, node, {});
        };
    if (stores_narrow(device.traits()))
        fit.least_seconds = [&](const Graph& g, const Node& node) {
            if (constant.size() != g.values.size()) constant = constant_values(g);
            return least_seconds(device, g, node, constant);
        };
    fit.least_narrow = options.least_narrow;
    fit.narrow_cost = options.narrow_cost;
    fit_to_device(graph, fit);
    plan->expanded = whole.expanded();

    constant = constant_values(graph);
    if (options.tune_seconds > 0) tune_problems(device, graph, constant, options, plan->notes);
    std::vector<Choice> choices = choose_engines(device, graph, constant, options, plan->notes);
    recompute(device.traits(), graph, constant, choices, options, plan->notes);
    LaunchSchedule schedule =
        make_launch_schedule(device.traits(), graph, constant, choices, options);
    MemoryPlan memory = plan_memory_and_packings(device, graph, constant, schedule, options);
    take_memory(*plan, std::move(memory), graph, schedule);
    add_steps(*plan, device, graph, choices, schedule, options);
    plan->graph = std::move(graph);
    plan->gradient_marks = find_gradient_marks(*plan);
    return plan;
}

}  // namespace

std::unique_ptr<Plan> make_plan(const Context& context, const Graph& graph,
                                const PlanOptions& options) {
    tell_left_out_plugins();
    ContextImpl& device = Access::impl(context);
    return retry_without_failed_engines(device, [&] { return try_plan(device, graph, options); });
}

}  // namespace dlprim
