// SPDX-License-Identifier: MIT
// StepBuilder: engines make launches.
#include "plan/steps.hpp"

#include "base/text.hpp"
#include "engine/build_launch.hpp"
#include "engine/disabled.hpp"
#include "graph/operator.hpp"
#include "plan/engine_failed.hpp"
#include "plan/memory.hpp"

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

}  // namespace

std::string Step::disable_key() const {
    if (joined) return joined_steps_key;
    return problem ? dlprim::disable_key(*engine, *problem) : std::string();
}

Step StepBuilder::build(const Item& item) {
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
            // The bytes between the elements of a strided view belong to others.
            if (stored(item.reads[0]).layout.is_strided())
                build_reorder(item, step);
            else
                step.launch = std::make_unique<CopyLaunch>(bytes_of(item.reads[0]));
            break;
    }
    const Traits& device = context_.traits();
    step.bound_seconds = std::max(step.flops / (std::max(1.0, device.gflops) * 1e9),
                                  step.bytes / (std::max(1.0, device.gbytes_per_s) * 1e9));
    return step;
}

void StepBuilder::add_operand(Step& step, int id) const {
    step.operands.push_back(schedule_.place(id));
    step.bytes += static_cast<double>(bytes_of(id));
}

void StepBuilder::build_node(const Item& item, Step& step) {
    const Node& node = graph_.nodes[static_cast<std::size_t>(item.choice)];
    const Choice& choice = choices_[static_cast<std::size_t>(item.choice)];
    step.fused = node.fused;
    for (int id : item.writes) step.written.emplace_back(schedule_.place(id), bytes_of(id));
    step.written_dtype = graph_.spec(node.outputs[0]).dtype;
    std::vector<TensorSpec> inputs, outputs;
    for (ValueId id : node.inputs) inputs.push_back(graph_.spec(id));
    for (ValueId id : node.outputs) outputs.push_back(graph_.spec(id));
    step.flops = node.op->flops(node.attrs, inputs, outputs);
    for (const auto& [output, input] : matching_in_place(graph_, node))
        step.in_place.emplace_back(item.reads.size() + static_cast<std::size_t>(output),
                                   static_cast<std::size_t>(input));
    find_launch(step, {choice.engine, choice.problem, choice.tuning});
}

void StepBuilder::build_pack(const Item& item, Step& step) {
    const Choice& choice = choices_[static_cast<std::size_t>(item.choice)];
    find_launch(step, {choice.engine, choice.problem, choice.tuning, item.packed_input});
}

/// On GPUs each step keeps kernels of its own, so that runs set no arguments again. What refuses
/// values says whose launch it is.
bool StepBuilder::may_share(const Launch& launch) const {
    if (context_.is_host()) return true;
    const auto calls = launch.calls();
    return context_.traits().wide_vectors && !calls.empty() &&
           std::none_of(calls.begin(), calls.end(),
                        [](const KernelCall& call) { return call.may_refuse(); });
}

void StepBuilder::find_launch(Step& step, const Work& work) {
    step.engine = work.engine;
    std::vector<Made>& known = made_[work.problem];
    for (const Made& made : known) {
        if (made.engine != work.engine || made.packed != work.packed || made.tuning != work.tuning)
            continue;
        step.launch = made.launch;
        step.problem = made.problem;
        return;
    }
    if (uses_ != nullptr && work.packed < 0)
        uses_->push_back({step.engine,
                          work.problem,
                          work.tuning,
                          cat("[", step.type, " '", step.name, "'] "),
                          {}});
    step.problem = std::make_shared<const Problem>(work.problem);
    if (with_launches_) step.launch = make_launch(step, work);
    if (!step.launch || may_share(*step.launch))
        known.push_back({work.engine, work.tuning, work.packed, step.launch, step.problem});
}

std::unique_ptr<Launch> StepBuilder::make_launch(const Step& step, const Work& work) const {
    try {
        std::unique_ptr<Launch> launch =
            work.packed < 0
                ? build_launch(*work.engine, context_, work.problem, work.tuning)
                : work.engine->build_packing(context_, work.problem, work.tuning, work.packed);
        launch->set_owner(cat("[", step.type, " '", step.name, "'] "));
        return launch;
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::out_of_memory) throw;
        throw EngineFailed(EngineFailed::Kind::build, error, {{step.disable_key(), error.what()}});
    }
}

void StepBuilder::build_reorder(const Item& item, Step& step) {
    const Stored& from = stored(item.reads[0]);
    const Stored& to = stored(item.writes[0]);
    Problem problem;
    problem.op = "Reorder";
    const TensorSpec& spec = graph_.spec(to.value);
    problem.inputs = {{spec.shape, spec.dtype, from.layout, false}};
    problem.outputs = {{spec.shape, spec.dtype, to.layout, false}};
    std::string reasons;
    for (const Engine* engine : EngineRegistry::instance().of("Reorder", context_.is_host())) {
        Verdict verdict = usable(context_, *engine, problem);
        if (!verdict) {
            reasons += cat("; ", engine->name(), ": ", verdict.reason);
            continue;
        }
        find_launch(step, {engine, problem, engine->default_tuning(context_.traits(), problem)});
        return;
    }
    fail(ErrorKind::unsupported, "no engine converts layout ", from.layout.str(), " to ",
         to.layout.str(), reasons);
}

}  // namespace dlprim
