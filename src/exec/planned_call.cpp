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

std::vector<const Engine*> used_engines(const Plan& plan) {
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

/// Enqueues the conversion of a result to the layout that was promised.
void move_result(ContextImpl& device, const TensorSpec& spec, const BufferRef& from,
                 const Layout& made, const BufferRef& to, const Layout& wanted) {
    if (reorder(device, spec, from, made, to, wanted)) return;
    const auto plain =
        device.allocate_cached(storage_bytes(spec.shape, spec.dtype, Layout::plain()));
    if (!reorder(device, spec, from, made, {plain.get(), 0}, Layout::plain()) ||
        !reorder(device, spec, {plain.get(), 0}, Layout::plain(), to, wanted))
        fail(ErrorKind::unsupported,
             "its engine does not work on this device, and no other one writes its results as ",
             wanted.str(), "; call it again");
}

}  // namespace

void PlannedCall::promise(const Plan& plan) {
    plan_ = &plan;
    layouts_ = layouts_of(plan);
    engines_ = used_engines(plan);
}

void PlannedCall::sketch(const Context& context) {
    const NotedBuilds noted;
    sketch_ = make_plan(context, graph_, options_);
    promise(*sketch_);
    std::set<const PendingProgram*> known;
    for (const auto& program : noted.programs())
        if (!program->compiled() && known.insert(program.get()).second)
            programs_.push_back(program);
}

void PlannedCall::finish(const Context& context, BlockStore& store) {
    if (finished()) return;
    std::unique_ptr<Plan> plan = make_plan(context, graph_, options_);
    if (plan_ == nullptr)
        promise(*plan);
    else if (layouts_of(*plan) != layouts_ || used_engines(*plan) != engines_)
        replaced_ = true;
    executor_ = std::make_unique<Executor>(context, std::move(plan), store, true);
    if (forgets_constants_) executor_->forget_constants();
}

void PlannedCall::drop_sketch() {
    if (!finished() || plan_ == &executor_->plan()) return;
    plan_ = &executor_->plan();
    sketch_.reset();
    retired_.clear();
    programs_.clear();
}

void PlannedCall::follow(std::span<Place> memory, const MovedResults& moved) {
    if (moved.empty() && !followed_) return;
    for (std::size_t i = 0; i < memory.size(); ++i) {
        const External& external = plan_->externals[i];
        if (external.kind != External::Kind::input) continue;
        const auto* const found = moved.find(memory[i], plan_->graph.spec(external.value));
        const Layout wanted = found != nullptr ? found->layout : layouts_[i];
        if (found != nullptr) memory[i] = found->made;
        Layout& planned = options_.input_layouts[external.value];  // plain if it is new
        if (planned == wanted) continue;
        planned = wanted;
        followed_ = true;
        if (finished()) start_again();
    }
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

void PlannedCall::place_results(const Context& context, MovedResults& moved) {
    ContextImpl& device = Access::impl(context);
    const Plan& plan = executor_->plan();
    for (const Move& move : std::exchange(moves_, {})) {
        const External& external = plan.externals[move.external];
        const TensorSpec& spec = plan.graph.spec(external.value);
        const BufferRef from{move.from.buffer.get(), move.from.byte_offset},
            to{move.to.buffer.get(), move.to.byte_offset};
        const Layout &made = external.layout, &wanted = layouts_[move.external];
        if (made == wanted && !made.is_strided()) {
            device.queue().copy(from, to, storage_bytes(spec.shape, spec.dtype, made));
            continue;
        }
        to.buffer->touch();
        move_result(device, spec, from, made, to, wanted);
        if (!wanted.is_strided()) moved.add(move.to, spec, move.from, made);
    }
}

const MovedResults::Result* MovedResults::find(const Place& promised,
                                               const TensorSpec& spec) const {
    const auto is_there = [&](const Result& result) {
        return result.promised.buffer == promised.buffer &&
               result.promised.byte_offset == promised.byte_offset && result.spec == spec;
    };
    const auto last = std::find_if(results_.rbegin(), results_.rend(), is_there);
    if (last == results_.rend() || last->version != promised.buffer->version()) return nullptr;
    return &*last;
}

void PlannedCall::forget_constants() {
    forgets_constants_ = true;
    if (executor_) executor_->forget_constants();
}

}  // namespace dlprim
