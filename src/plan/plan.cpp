// SPDX-License-Identifier: MIT
// make_plan: the last passes for the device, then choice, schedule, memory, launches.
#include "plan/plan.hpp"

#include "base/text.hpp"
#include "engine/disabled.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"
#include "plan/chains.hpp"
#include "plan/choose.hpp"
#include "plan/memory.hpp"
#include "plan/schedule.hpp"
#include "plan/tune.hpp"
#include "runtime/access.hpp"
#include "runtime/program_builds.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <chrono>
#include <exception>

namespace dlprim {

namespace {

class CopyLaunch : public Launch {
  public:
    explicit CopyLaunch(std::uint64_t bytes) : bytes_(bytes) {}
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override {
        queue.copy(operands[0], operands[1], bytes_);
    }

  private:
    std::uint64_t bytes_;
};

/// An engine that applies, but cannot be built.
class EngineFailed : public Error {
  public:
    EngineFailed(const Error& error, std::string engine_key)
        : Error(error.kind(), error.what()), key(std::move(engine_key)) {}
    std::string key;  ///< to disable it by
};

/// Turns scheduled items into steps.
class StepBuilder {
  public:
    StepBuilder(ContextImpl& context, const Graph& graph, const std::vector<Choice>& choices,
                const Schedule& schedule, bool with_launches)
        : context_(context),
          graph_(graph),
          choices_(choices),
          schedule_(schedule),
          with_launches_(with_launches) {}

    Step build(const Item& item) const {
        Step step;
        step.name = item.name;
        step.type = item.type;
        step.part = item.part;
        for (int id : item.reads) add_operand(step, id);
        for (int id : item.writes) add_operand(step, id);
        if (item.workspace >= 0) add_operand(step, item.workspace);
        switch (item.kind) {
            case Item::Kind::node:
                build_node(item, step);
                break;
            case Item::Kind::pack:
                build_pack(item, step);
                break;
            case Item::Kind::reorder:
                build_reorder(item, step);
                break;
            case Item::Kind::copy:
                step.launch = std::make_unique<CopyLaunch>(bytes_of(item.reads[0]));
                break;
        }
        const Traits& device = context_.traits();
        step.bound_seconds = std::max(step.flops / (std::max(1.0, device.gflops) * 1e9),
                                      step.bytes / (std::max(1.0, device.gbytes_per_s) * 1e9));
        return step;
    }

  private:
    const Stored& stored(int id) const { return schedule_.stored[static_cast<std::size_t>(id)]; }
    std::uint64_t bytes_of(int id) const { return stored(id).bytes; }

    void add_operand(Step& step, int id) const {
        step.operands.push_back(stored(schedule_.root(id)).place);
        step.bytes += static_cast<double>(bytes_of(id));
    }

    void build_node(const Item& item, Step& step) const {
        const Node& node = graph_.nodes[static_cast<std::size_t>(item.choice)];
        const Choice& choice = choices_[static_cast<std::size_t>(item.choice)];
        step.engine = choice.engine;
        step.fused = node.fused;
        for (int id : item.writes)
            step.written.emplace_back(stored(schedule_.root(id)).place, bytes_of(id));
        step.written_dtype = graph_.spec(node.outputs[0]).dtype;
        std::vector<TensorSpec> inputs, outputs;
        for (ValueId id : node.inputs) inputs.push_back(graph_.spec(id));
        for (ValueId id : node.outputs) outputs.push_back(graph_.spec(id));
        step.flops = node.op->flops(node.attrs, inputs, outputs);
        build_launch(step, choice.problem,
                     [&] { return choice.engine->build(context_, choice.problem, choice.tuning); });
    }

    /// step.engine makes the launch; where it cannot, others may.
    template <typename Build>
    void build_launch(Step& step, const Problem& problem, Build&& build) const {
        step.disable_key = disable_key(*step.engine, problem);
        if (!with_launches_) return;
        try {
            step.launch = build();
        } catch (const Error& error) {
            if (error.kind() == ErrorKind::out_of_memory) throw;
            throw EngineFailed(error, step.disable_key);
        }
    }

    void build_pack(const Item& item, Step& step) const {
        const Choice& choice = choices_[static_cast<std::size_t>(item.choice)];
        step.engine = choice.engine;
        build_launch(step, choice.problem, [&] {
            return choice.engine->build_packing(context_, choice.problem, choice.tuning,
                                                item.packed_input);
        });
    }

    void build_reorder(const Item& item, Step& step) const {
        const Stored& from = stored(item.reads[0]);
        const Stored& to = stored(item.writes[0]);
        Problem problem;
        problem.op = "Reorder";
        const TensorSpec& spec = graph_.spec(to.value);
        problem.inputs = {{spec.shape, spec.dtype, from.layout, false}};
        problem.outputs = {{spec.shape, spec.dtype, to.layout, false}};
        std::string reasons;
        for (const Engine* engine : EngineRegistry::instance().of("Reorder", context_.is_host())) {
            const Verdict verdict = usable(context_, *engine, problem);
            if (!verdict) {
                reasons += cat("; ", engine->name(), ": ", verdict.reason);
                continue;
            }
            step.engine = engine;
            build_launch(step, problem, [&] {
                return engine->build(context_, problem,
                                     engine->default_tuning(context_.traits(), problem));
            });
            return;
        }
        fail(ErrorKind::unsupported, "no engine reorders ", from.layout.str(), " to ",
             to.layout.str(), reasons);
    }

    ContextImpl& context_;
    const Graph& graph_;
    const std::vector<Choice>& choices_;
    const Schedule& schedule_;
    bool with_launches_;
};

bool in_chain(const std::vector<ChainRange>& chains, std::size_t step) {
    return std::any_of(chains.begin(), chains.end(), [&](const ChainRange& chain) {
        return chain.first <= step && step < chain.last;
    });
}

/// A plan's launches on their way to be compiled. Programs are compiled together, each once, on all
/// cores; what fails is told as if steps were compiled one after the other, so that which engine is
/// disabled does not depend on threads.
class CompileStage {
    static constexpr int most_threads = 16;  ///< a compiler takes some hundred MiB in each

  public:
    CompileStage(ContextImpl& context, const PlanOptions& options)
        : context_(context), options_(options) {}

    /// The step's launch, with the programs that were asked for while it was made.
    void add(Step& step, const PendingPrograms& programs) {
        steps_.push_back({&step, {}});
        for (const auto& program : programs) {
            if (program->compiled()) continue;
            const auto [known, is_new] = numbers_.emplace(program.get(), programs_.size());
            if (is_new) {
                programs_.push_back(program);
                wanted_by_.push_back(step.name);
            }
            steps_.back().programs.push_back(known->second);
        }
    }

    /// Throws EngineFailed.
    void run() {
        const auto start = std::chrono::steady_clock::now();
        const int total = static_cast<int>(programs_.size());
        const int threads =
            total < 2 ? total : std::min({context_.pool().threads(), total, most_threads});
        const auto errors =
            compile_together(programs_, threads, [&](std::size_t done, std::size_t next) {
                if (options_.progress)
                    options_.progress("compiling " + wanted_by_[next], static_cast<int>(done),
                                      total);
            });
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        if (total > 0)
            log(LogLevel::info, cat("made ", total, " programs in ", seconds.count(), " s on ",
                                    threads, threads == 1 ? " thread" : " threads"));
        for (const Entry& entry : steps_) finish(entry, errors);
        if (options_.progress && total > 0) options_.progress("", total, total);
    }

  private:
    struct Entry {
        Step* step;
        std::vector<std::size_t> programs;  ///< by number, those that were not compiled
    };

    /// Makes the kernels of a step.
    static void finish(const Entry& entry, const std::vector<std::exception_ptr>& errors) {
        const Step& step = *entry.step;
        try {
            for (const std::size_t program : entry.programs)
                if (errors[program]) std::rethrow_exception(errors[program]);
            step.launch->compile();
        } catch (const Error& error) {
            if (step.engine == nullptr || error.kind() == ErrorKind::out_of_memory) throw;
            throw EngineFailed(error, step.disable_key);
        }
    }

    ContextImpl& context_;
    const PlanOptions& options_;
    PendingPrograms programs_;  ///< distinct
    std::vector<std::string> wanted_by_;
    std::map<const PendingProgram*, std::size_t> numbers_;
    std::vector<Entry> steps_;
};

/// One try. Throws EngineFailed.
std::unique_ptr<Plan> try_plan(ContextImpl& device, Graph graph, const PlanOptions& options) {
    auto plan = std::make_unique<Plan>();
    force_engines(graph, options.engines);
    expand_composites(graph);
    if (options.fuse) {
        fold_batch_norms(graph);
        fuse_epilogues(graph, [&](const Graph& g, const Node& node) {
            return fused_node_pays(device, g, node);
        });
    }
    lower(graph);
    force_engines(graph, options.engines);
    if (options.fuse) {
        merge_pointwise(graph);
        while (recompute_pointwise(graph, device.traits())) merge_pointwise(graph);
    }

    const std::vector<char> constant = constant_values(graph);
    if (stores_narrow(device.traits()))
        lower_precision(graph, options.least_narrow, options.narrow_cost,
                        [&](const Graph& g, const Node& node) {
                            return least_seconds(device, g, node, constant);
                        });
    if (options.tune_seconds > 0) tune_problems(device, graph, constant, options, plan->notes);
    const std::vector<Choice> choices =
        choose_engines(device, graph, constant, options, plan->notes);
    Schedule schedule = make_schedule(device.traits(), graph, constant, choices, options);
    MemoryPlan memory = plan_memory(device.traits(), graph, constant, schedule, options);
    plan->slabs = std::move(memory.slabs);
    plan->blocks = std::move(memory.blocks);
    plan->externals = std::move(memory.externals);
    plan->literals = std::move(memory.literals);
    plan->peak_bytes = memory.peak_bytes;
    plan->setup_peak_bytes = memory.setup_peak_bytes;
    plan->memory = std::move(memory.report);
    plan->places.resize(graph.values.size());
    for (std::size_t i = 0; i < graph.values.size(); ++i) {
        if (schedule.native[i] < 0) continue;
        const int plain = schedule.find(static_cast<ValueId>(i), Layout::plain());
        if (plain >= 0)
            plan->places[i] = schedule.stored[static_cast<std::size_t>(schedule.root(plain))].place;
    }

    const StepBuilder builder(device, graph, choices, schedule, options.build);
    const bool chains = options.chains && options.build && may_have_chains(device.traits()) &&
                        std::all_of(schedule.items.begin(), schedule.items.end(),
                                    [](const Item& item) { return item.part == Part::forward; });
    std::vector<PendingPrograms> programs;  // by item
    for (std::size_t i = 0; i < schedule.items.size(); ++i) {
        const NotedBuilds noted;
        std::vector<Step>& steps = i < schedule.setup ? plan->setup : plan->steps;
        steps.push_back(builder.build(schedule.items[i]));
        programs.push_back(noted.programs());
    }
    if (chains) plan->chains = find_chains(plan->steps);
    // Someone who wants all builds later looks at the plan, and runs little of it.
    if (options.build && !BuildsLater::wanted()) {
        CompileStage stage(device, options);
        for (std::size_t i = 0; i < plan->setup.size(); ++i) stage.add(plan->setup[i], programs[i]);
        for (std::size_t i = 0; i < plan->steps.size(); ++i)
            if (!in_chain(plan->chains, i)) stage.add(plan->steps[i], programs[schedule.setup + i]);
        stage.run();
    }
    plan->graph = std::move(graph);
    return plan;
}

}  // namespace

std::unique_ptr<Plan> make_plan(const Context& context, Graph graph, const PlanOptions& options) {
    for (;;) {
        try {
            return try_plan(Access::impl(context), graph, options);
        } catch (const EngineFailed& failed) {
            if (!disable(Access::impl(context), failed.key, failed.what())) throw;
        }
    }
}

}  // namespace dlprim
