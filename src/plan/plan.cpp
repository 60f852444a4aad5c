// SPDX-License-Identifier: MIT
// make_plan: the last passes for the device, then choice, schedule, memory, launches.
#include "plan/plan.hpp"

#include "base/text.hpp"
#include "engine/put_aside.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"
#include "plan/chains.hpp"
#include "plan/choose.hpp"
#include "plan/memory.hpp"
#include "plan/schedule.hpp"
#include "plan/tune.hpp"

#include <algorithm>

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
    std::string key;  ///< to put it aside by
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

    /// Compiles what was left for later.
    static void compile(const Step& step) {
        try {
            step.launch->compile();
        } catch (const Error& error) {
            if (step.engine == nullptr || error.kind() == ErrorKind::out_of_memory) throw;
            throw EngineFailed(error, step.put_aside_key);
        }
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
        step.put_aside_key = put_aside_key(*step.engine, problem);
        if (!with_launches_) return;
        try {
            step.launch = build();
        } catch (const Error& error) {
            if (error.kind() == ErrorKind::out_of_memory) throw;
            throw EngineFailed(error, step.put_aside_key);
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
    const int total = static_cast<int>(schedule.items.size());
    const auto show = [&](const std::string& name, int done) {
        if (options.progress) options.progress("compiling " + name, done, total);
    };
    for (int i = 0; i < total; ++i) {
        const Item& item = schedule.items[static_cast<std::size_t>(i)];
        const bool setup = static_cast<std::size_t>(i) < schedule.setup;
        show(item.name, i);
        std::optional<BuildsLater> later;
        if (chains && !setup) later.emplace();
        (setup ? plan->setup : plan->steps).push_back(builder.build(item));
    }
    if (chains) {
        plan->chains = find_chains(plan->steps);
        auto next = plan->chains.begin();
        for (std::size_t i = 0; i < plan->steps.size(); ++i) {
            if (next != plan->chains.end() && i == next->first) {
                i = next++->last - 1;
                continue;
            }
            show(plan->steps[i].name, static_cast<int>(schedule.setup + i));
            builder.compile(plan->steps[i]);
        }
    }
    if (options.progress) options.progress("", total, total);
    plan->graph = std::move(graph);
    return plan;
}

}  // namespace

std::unique_ptr<Plan> make_plan(const Context& context, Graph graph, const PlanOptions& options) {
    for (;;) {
        try {
            return try_plan(context.impl(), graph, options);
        } catch (const EngineFailed& failed) {
            if (!put_aside(context.impl(), failed.key, failed.what())) throw;
        }
    }
}

}  // namespace dlprim
