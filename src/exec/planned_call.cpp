// SPDX-License-Identifier: MIT
// PlannedCall.
#include "exec/planned_call.hpp"

#include "base/text.hpp"
#include "engine/disabled.hpp"
#include "engine/engine.hpp"
#include "engine/launch.hpp"
#include "plan/make_plan.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>
#include <set>

namespace dlprim {

namespace {

std::vector<Layout> layouts_of(const Plan& plan) {
    std::vector<Layout> layouts;
    for (const External& external : plan.externals) layouts.push_back(external.layout);
    return layouts;
}

std::vector<const Engine*> engines_of(const Plan& plan) {
    std::vector<const Engine*> engines;
    for (const auto* steps : {&plan.setup, &plan.steps})
        for (const Step& step : *steps) engines.push_back(step.engine);
    return engines;
}

/// Enqueues a conversion by one engine. Returns false if none makes it.
bool reorder(ContextImpl& device, const TensorSpec& spec, const BufferRef& from,
             const Layout& from_layout, const BufferRef& to, const Layout& to_layout) {
    Problem problem;
    problem.op = "Reorder";
    problem.inputs = {{spec.shape, spec.dtype, from_layout, false}};
    problem.outputs = {{spec.shape, spec.dtype, to_layout, false}};
    for (const Engine* engine : EngineRegistry::instance().of("Reorder", device.is_host())) {
        if (!usable(device, *engine, problem)) continue;
        const BufferRef pair[] = {from, to};
        engine->build(device, problem, engine->default_tuning(device.traits(), problem))
            ->enqueue(device.queue(), pair);
        return true;
    }
    return false;
}

}  // namespace

void PlannedCall::sketch(const Context& context) {
    const NotedBuilds noted;
    sketch_ = make_plan(context, graph_, options_);
    layouts_ = layouts_of(*sketch_);
    engines_ = engines_of(*sketch_);
    std::set<const PendingProgram*> known;
    for (const auto& program : noted.programs())
        if (!program->compiled() && known.insert(program.get()).second)
            programs_.push_back(program);
}

void PlannedCall::finish(const Context& context, BlockStore& store) {
    if (finished()) return;
    std::unique_ptr<Plan> plan = make_plan(context, graph_, options_);
    if (!layouts_.empty() && (layouts_of(*plan) != layouts_ || engines_of(*plan) != engines_))
        replaced_ = true;
    executor_ = std::make_unique<Executor>(context, std::move(plan), store, true);
    if (forgets_constants_) executor_->forget_constants();
}

void PlannedCall::drop_sketch() {
    if (!sketch_ || !finished()) return;
    sketch_.reset();
    programs_.clear();
}

void PlannedCall::bind(const Context& context, std::span<const Place> memory) {
    moves_.clear();
    const Plan& plan = executor_->plan();
    for (std::size_t i = 0; i < memory.size(); ++i) {
        const External& external = plan.externals[i];
        Place place = memory[i];
        if (replaced_ && (external.kind == External::Kind::output ||
                          external.kind == External::Kind::gradient)) {
            const TensorSpec& spec = plan.graph.spec(external.value);
            const std::uint64_t bytes = storage_bytes(spec.shape, spec.dtype, external.layout);
            place = {Access::impl(context).allocate_cached(bytes), 0};
            moves_.push_back({i, place, memory[i]});
        }
        executor_->bind(static_cast<int>(i), std::move(place.buffer), place.byte_offset);
    }
}

void PlannedCall::place_results(const Context& context) {
    ContextImpl& device = Access::impl(context);
    const Plan& plan = executor_->plan();
    for (const Move& move : std::exchange(moves_, {})) {
        const External& external = plan.externals[move.external];
        const TensorSpec& spec = plan.graph.spec(external.value);
        const BufferRef from{move.from.buffer.get(), move.from.byte_offset},
            to{move.to.buffer.get(), move.to.byte_offset};
        const Layout &made = external.layout, &wanted = layouts_[move.external];
        to.buffer->touch();
        if (made == wanted && !made.is_strided()) {
            device.queue().copy(from, to, storage_bytes(spec.shape, spec.dtype, made));
            continue;
        }
        if (reorder(device, spec, from, made, to, wanted)) continue;
        const auto plain =
            device.allocate_cached(storage_bytes(spec.shape, spec.dtype, Layout::plain()));
        if (!reorder(device, spec, from, made, {plain.get(), 0}, Layout::plain()) ||
            !reorder(device, spec, {plain.get(), 0}, Layout::plain(), to, wanted))
            fail(ErrorKind::unsupported,
                 "its engine does not work on this device, and no other "
                 "one writes its results as ",
                 wanted.str(), "; call it again");
    }
}

void PlannedCall::forget_constants() {
    forgets_constants_ = true;
    if (executor_) executor_->forget_constants();
}

}  // namespace dlprim
