// SPDX-License-Identifier: MIT
// NetImpl: the graphs and plans of its steps, and what memory they need.
#include "api/net_impl.hpp"
#include "api/shard_sums.hpp"
#include "base/text.hpp"
#include "graph/passes/pipeline.hpp"
#include "plan/make_plan.hpp"
#include "plan/whole_nodes.hpp"
#include "runtime/context_impl.hpp"
#include "train/update.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

namespace {

/// Parameters of at least so many bytes get memory of their own, so that it can be released.
constexpr std::uint64_t large_param = 64 << 10;
/// So many plans stay whatever memory they take, unless an allocation fails.
constexpr std::size_t always_kept = 8;

void drop_losses(Graph& graph) {
    if (graph.losses.size() == graph.outputs.size()) return;
    std::erase_if(graph.outputs,
                  [&](const auto& output) { return graph.losses.count(output.first) > 0; });
    graph.losses.clear();
    graph.remove_dead();
}

/// What a solver with shards keeps beside the plan's memory.
void add_waiting_sums(MemoryMap& map, std::uint64_t bytes) {
    const int end = static_cast<int>(map.steps.size()) - 1;
    map.entries.push_back({MemoryMap::Entry::Kind::block, "shard sums", bytes, 0, end, -1, 0});
    for (MemoryMap::Step& step : map.steps) step.live_bytes += bytes;
    map.peak_bytes += bytes;
    map.setup_peak_bytes += bytes;
    map.persistent_bytes += bytes;
}

}  // namespace

DifferentiateOptions NetImpl::gradient_options(const Graph& graph) const {
    DifferentiateOptions how;
    how.input_gradients = options_.input_gradients || border_;
    how.seeds_are_inputs = options_.output_gradients;
    if (!border_) return how;
    for (const ValueId id : graph.inputs)
        if (border_->wanted.count(graph.value(id).name) == 0) how.unwanted.push_back(id);
    how.seeded = border_->seeded;
    how.continued = border_->continued;
    return how;
}

Graph NetImpl::step_graph(Graph graph, const SolverOptions* solver) const {
    if (solver != nullptr) graph.shards = solver->shards;
    if (options_.without_losses) drop_losses(graph);
    DeriveOptions derive_options;
    derive_options.engines = options_.engines;
    if (options_.mode != Mode::inference && options_.backward)
        derive_options.gradients = gradient_options(graph);
    WholeNodes whole(Access::impl(context_), derive_options.gradients);
    derive_options.whole_pays = [&](const Graph& g, const Node& node) {
        return whole.pays(g, node);
    };
    if (solver != nullptr)
        derive_options.solver = solver_passes(*solver, !options_.output_gradients,
                                              border_ ? border_->whole : WholeNet{});
    derive(graph, derive_options);
    return graph;
}

PlanOptions NetImpl::options_of_plans(bool apart) const {
    PlanOptions plan_options;
    plan_options.fuse = options_.fuse && !apart;
    plan_options.engines = options_.engines;
    plan_options.progress = options_.progress;
    plan_options.tune_seconds = options_.tune_seconds;
    // The host reads even small parameters where the model has them.
    if (lets_go())
        plan_options.bind_params_from =
            among_many_ && Access::impl(context_).is_host() ? 0 : large_param;
    if (options_.memory_limit > 0) {
        const std::uint64_t all = Access::impl(context_).traits().global_bytes;
        plan_options.memory_limit = std::min(options_.memory_limit, all);
        plan_options.recompute_to_fit = options_.backward;
    }
    plan_options.chains = !apart;
    plan_options.report = !among_many_;  // nobody can ask such a net for it
    plan_options.check_engines = EngineChecks::problems;
    plan_options.kept = kept_;
    plan_options.identity = [this](const Value& parameter) {
        return among_many_ ? source_->identity(parameter) : parameter.name;
    };
    return plan_options;
}

MemoryMap NetImpl::plan_memory(const SolverOptions* solver) {
    return plan_memory_of(options_, solver == nullptr && solver_ ? &*solver_ : solver, false);
}

MemoryMap NetImpl::plan_memory(const SolverOptions& solver, const std::vector<ShardRange>& parts,
                               std::size_t rank) {
    return plan_memory_of(options_, &solver, false, parts, rank);
}

MemoryMap NetImpl::plan_memory_of(const NetOptions& options, const SolverOptions* solver,
                                  bool first_fit, const std::vector<ShardRange>& parts,
                                  std::size_t rank) const {
    PlanOptions plan_options = options_of_plans(false);
    plan_options.first_fit = first_fit;
    plan_options.build = false;
    plan_options.kept = nullptr;
    plan_options.over_limit = true;
    plan_options.tune_seconds = 0;
    plan_options.progress = {};
    const Graph graph = step_graph(build_graph(description_, options), solver);
    const std::unique_ptr<Plan> plan = make_plan(context_, graph, plan_options);
    if (solver != nullptr && solver->shards > 1) {
        const std::vector<ShardRange> alone{{0, solver->shards}};
        add_waiting_sums(plan->memory_map,
                         ShardSums::waiting_bytes(*plan, parts.empty() ? alone : parts, rank));
    }
    return std::move(plan->memory_map);
}

std::unique_ptr<Plan> NetImpl::plan_step(const SolverOptions* solver, bool launches) const {
    PlanOptions plan_options = options_of_plans(false);
    plan_options.build = launches;
    plan_options.kept = nullptr;
    plan_options.over_limit = true;
    plan_options.tune_seconds = 0;
    return make_plan(context_, step_graph(own_graph(), solver), plan_options);
}

TooLarge NetImpl::with_largest_batch(const TooLarge& error) const {
    if (error.largest_batch.value_or(0) == 0 || !options_.input_shapes.empty()) return error;
    NetOptions options = options_;
    const SolverOptions* const solver = solver_ ? &*solver_ : nullptr;
    try {
        const MemoryMap whole = plan_memory_of(options, solver, true);
        // Fits and does not fit. The estimate is near, so the search begins beside it.
        std::int64_t fits = 0, fails = whole.batch, next = whole.estimated_batch;
        for (int plans = 0; plans < 20 && fails - fits > 1; ++plans) {
            options.batch = std::clamp(next, fits + 1, fails - 1);
            (plan_memory_of(options, solver, true).fits() ? fits : fails) = options.batch;
            const std::int64_t step = std::max<std::int64_t>(1, whole.estimated_batch / 64)
                                      << std::min(plans, 20);
            next = fits == 0              ? options.batch - step
                   : fails == whole.batch ? options.batch + step
                                          : (fits + fails) / 2;
        }
        if (fits > 0) return {error.need, fits, fails - fits > 1};
    } catch (const Error&) {
        // The batch may be no dimension of its own for the network. The estimate remains.
    }
    return error;
}

std::uint64_t NetImpl::own_bytes(const Built& plan) {
    std::uint64_t bytes = plan.executor->kept_bytes(false);
    for (const auto* tensors : {&plan.inputs, &plan.outputs})
        for (const auto& [name, tensor] : *tensors) bytes += tensor.bytes();
    return bytes;
}

void NetImpl::drop_plans() {
    const auto sets = static_cast<std::size_t>(sets_);
    const auto most = static_cast<std::size_t>(options_.max_plans) * sets;
    const std::uint64_t most_bytes = Access::impl(context_).traits().global_bytes / 2;
    std::uint64_t bytes = 0;
    for (const auto& [key, plan] : plans_) bytes += own_bytes(*plan);
    while (plans_.size() >= most || (plans_.size() >= always_kept * sets && bytes > most_bytes)) {
        const auto oldest = std::min_element(
            plans_.begin(), plans_.end(),
            [](const auto& a, const auto& b) { return a.second->last_use < b.second->last_use; });
        bytes -= own_bytes(*oldest->second);
        plans_.erase(oldest);
    }
}

bool NetImpl::drop_all_plans() {
    if (current_ != nullptr || plans_.empty()) return false;
    plans_.clear();
    slabs_.clear();
    return true;
}

std::unique_ptr<Executor> NetImpl::make_executor(const Graph& graph, const PlanOptions& options) {
    std::unique_ptr<Plan> plan = make_plan(context_, graph, options);
    if (among_many_) find_blocks(*plan);
    try {
        // Backward reads what forward has left in slabs, whatever ran in between.
        SharedSlabs* const slabs =
            options_.mode == Mode::inference && !among_many_ ? &slabs_ : nullptr;
        auto executor =
            std::make_unique<Executor>(context_, std::move(plan), store_, among_many_, slabs);
        executor->share_setup(*kept_);
        return executor;
    } catch (const Error& error) {
        // What is kept to be fast must not be why memory is short.
        if (error.kind() != ErrorKind::out_of_memory || !drop_all_plans()) throw;
    }
    return make_executor(graph, options);
}

}  // namespace dlprim
