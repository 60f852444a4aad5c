// SPDX-License-Identifier: MIT
// Executor.
#include "exec/executor.hpp"

#include "base/text.hpp"
#include "engine/disabled.hpp"
#include "runtime/memory.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <tuple>

namespace dlprim {

namespace {

/// Whether a launch refused values, such as an index that is out of range. The engine is as good as
/// before.
bool blames_values(const Error& error) {
    return error.kind() == ErrorKind::invalid_argument;
}

Error named(const Step& step, const Error& error) {
    return {error.kind(), cat("[", step.type, " '", step.name, "'] ", error.what())};
}

/// Whether no other plan has the block. Scalars are the plan's own, too: a backward part reads
/// those of its forward part, also if another plan has run in between.
bool is_own(const Block& block) {
    return block.name == "constants" || block.name == "scalars";
}

/// The blocks of what the plan has packed and folded, of which it may have several.
std::vector<std::size_t> own_constants(const Plan& plan) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < plan.blocks.size(); ++i)
        if (plan.blocks[i].name == "constants") found.push_back(i);
    return found;
}

constexpr std::size_t scalar_bytes = 128;  // the most that one fill can write

}  // namespace

const std::shared_ptr<Buffer>& SharedSlabs::at(ContextImpl& device, std::size_t index,
                                               std::uint64_t bytes) {
    if (index >= slabs_.size()) slabs_.resize(index + 1);
    std::shared_ptr<Buffer>& slab = slabs_[index];
    if (slab && slab->bytes() >= bytes) return slab;
    slab.reset();  // before the larger one, so that both need not fit
    slab = device.allocate(bytes);
    return slab;
}

Executor::Executor(const Context& context, std::unique_ptr<Plan> plan, BlockStore& store,
                   bool brief_scratch, SharedSlabs* slabs)
    : context_(context),
      plan_(std::move(plan)),
      brief_scratch_(brief_scratch),
      shared_slabs_(slabs),
      slabs_(plan_->slabs.size()),
      bound_(plan_->externals.size()),
      scalars_(scalar_bytes) {
    ContextImpl& device = Access::impl(context_);
    const auto allocate = [&](std::uint64_t bytes) {
        return brief_scratch_ ? device.allocate_cached(bytes) : device.allocate(bytes);
    };
    for (std::size_t i = 0; i < slabs_.size() && !brief_scratch_; ++i)
        if (shared_slabs_ != nullptr)
            shared_slabs_->at(device, i, plan_->slabs[i]);  // an error now, not at the first run
        else
            slabs_[i] = allocate(plan_->slabs[i]);
    for (std::size_t i = 0; i < plan_->blocks.size(); ++i) {
        const Block& block = plan_->blocks[i];
        const bool own = is_own(block);
        const auto found = store.find(block.name);
        if (block.memory) {
            blocks_.push_back(block.memory);
        } else if (!own && found != store.end() && found->second->bytes() >= block.bytes) {
            blocks_.push_back(found->second);
        } else {
            blocks_.push_back(allocate(block.bytes));
            if (block.bytes > 0 && (brief_scratch_ || !is_new_zeros(*blocks_.back()))) {
                const std::uint32_t zero = 0;
                device.queue().fill({blocks_.back().get(), 0}, block.bytes / 4 * 4, &zero,
                                    sizeof(zero));
            }
            if (!own) store[block.name] = blocks_.back();
        }
        if (block.name == "scalars") scalar_block_ = static_cast<int>(i);
    }
    for (const ValueId value : plan_->literals) {
        const std::vector<std::byte>& data = plan_->graph.value(value).data;
        device.queue().write(resolve(plan_->places[static_cast<std::size_t>(value)]), data.data(),
                             data.size(), true);
    }
    resolve_steps(plan_->setup, setup_bound_);
    resolve_steps(plan_->steps, step_bound_);
    find_states();
    has_backward_ = std::any_of(plan_->steps.begin(), plan_->steps.end(),
                                [](const Step& step) { return step.part == Part::backward; });
    make_chains();
    check_unchecked();
}

void Executor::make_chains() {
    const std::span<const Step> steps(plan_->steps);
    for (const auto& [first, last, program] : plan_->chains) {
        if (program == nullptr) continue;
        try {
            auto chain = std::make_unique<Chain>(Access::impl(context_), program,
                                                 steps.subspan(first, last - first));
            chains_.push_back({first, last, std::move(chain)});
        } catch (const Error& error) {
            log(LogLevel::warning, cat("steps are launched one by one: ", error.what()));
        }
    }
}

void Executor::check_unchecked() {
    if (plan_->unchecked.empty()) return;
    const auto run = [&](Launch& launch, std::span<const BufferRef> operands) {
        for (const Link& linked : chains_) {
            if (!linked.chain->has(launch.calls())) continue;
            linked.chain->run(launch.calls(), operands);
            return true;
        }
        return false;
    };
    refuse_distrusted(check_engines_by(Access::impl(context_), plan_->unchecked, run));
    plan_->unchecked.clear();
}

void Executor::find_states() {
    const Graph& graph = plan_->graph;
    for (const Assignment& assignment : graph.assignments) {
        const NodeId producer = graph.value(assignment.source).producer;
        if (producer >= 0 && graph.nodes[static_cast<std::size_t>(producer)].part != Part::forward)
            continue;
        const TensorSpec& spec = graph.spec(assignment.target);
        states_.emplace_back(plan_->places[static_cast<std::size_t>(assignment.target)],
                             static_cast<std::uint64_t>(spec.shape.numel()) * size_of(spec.dtype));
    }
    // Running statistics are usually contiguous, so that one copy suffices for all.
    std::sort(states_.begin(), states_.end(), [](const auto& a, const auto& b) {
        return std::tuple(a.first.kind, a.first.index, a.first.offset) <
               std::tuple(b.first.kind, b.first.index, b.first.offset);
    });
    std::vector<std::pair<Place, std::uint64_t>> joined;
    for (const auto& [place, bytes] : states_) {
        if (!joined.empty() && place.kind == Place::Kind::block) {
            auto& [last, last_bytes] = joined.back();
            if (last.kind == place.kind && last.index == place.index &&
                place.offset - last.offset <= last_bytes + 256) {
                last_bytes = place.offset - last.offset + bytes;
                continue;
            }
        }
        joined.emplace_back(place, bytes);
    }
    states_ = std::move(joined);
}

void Executor::keep_states(std::size_t slot) {
    std::uint64_t total = 0;
    for (const auto& [place, bytes] : states_) total += (bytes + 255) / 256 * 256;
    if (total == 0) return;
    std::shared_ptr<Buffer>& kept = kept_.at(slot);
    if (!kept) kept = Access::impl(context_).allocate_cached(total);
    std::uint64_t at = 0;
    for (const auto& [place, bytes] : states_) {
        Access::impl(context_).queue().copy(resolve(place), {kept.get(), at}, bytes);
        at += (bytes + 255) / 256 * 256;
    }
}

void Executor::restore_states(std::size_t slot) {
    const std::shared_ptr<Buffer>& kept = kept_.at(slot);
    if (!kept) return;
    std::uint64_t at = 0;
    for (const auto& [place, bytes] : states_) {
        Access::impl(context_).queue().copy({kept.get(), at}, resolve(place), bytes);
        at += (bytes + 255) / 256 * 256;
    }
}

BufferRef Executor::resolve(const Place& place) const {
    const auto index = static_cast<std::size_t>(place.index);
    switch (place.kind) {
        case Place::Kind::slab:
            return {slabs_[index].get(), place.offset};
        case Place::Kind::block:
            return {blocks_[index].get(), place.offset};
        case Place::Kind::external:
            return {bound_[index].buffer.get(), bound_[index].byte_offset + place.offset};
        case Place::Kind::none:
            break;
    }
    return {};
}

/// Whether a run may find the place in other memory than the last one did.
bool Executor::moves(const Place& place) const {
    if (place.kind == Place::Kind::slab) return brief_scratch_ || shared_slabs_ != nullptr;
    return brief_scratch_ && place.kind == Place::Kind::block &&
           plan_->blocks[static_cast<std::size_t>(place.index)].name == "constants";
}

void Executor::resolve_steps(const std::vector<Step>& steps, std::vector<Bound>& bound) {
    bound.reserve(steps.size());
    for (const Step& step : steps) {
        Bound b;
        b.operands.reserve(step.operands.size());
        for (std::size_t i = 0; i < step.operands.size(); ++i) {
            const Place& place = step.operands[i];
            const bool external = place.kind == Place::Kind::external;
            if (external) b.externals.emplace_back(i, place.index);
            if (moves(place)) b.scratch.push_back(i);
            b.operands.push_back(external || moves(place) ? BufferRef{} : resolve(place));
        }
        bound.push_back(std::move(b));
    }
}

void Executor::bind(int external, std::shared_ptr<Buffer> buffer, std::uint64_t byte_offset) {
    bound_.at(static_cast<std::size_t>(external)) = {std::move(buffer), byte_offset};
}

void Executor::take_scratch() {
    ContextImpl& device = Access::impl(context_);
    if (shared_slabs_ != nullptr)
        for (std::size_t i = 0; i < slabs_.size(); ++i)
            slabs_[i] = shared_slabs_->at(device, i, plan_->slabs[i]);
    if (!brief_scratch_) return;
    for (std::size_t i = 0; i < slabs_.size(); ++i)
        slabs_[i] = device.allocate_cached(plan_->slabs[i]);
    if (!brief_constants_) return;
    const std::uint32_t zero = 0;
    for (const std::size_t index : own_constants(*plan_)) {
        const std::uint64_t bytes = plan_->blocks[index].bytes;
        blocks_[index] = device.allocate_cached(bytes);
        device.queue().fill({blocks_[index].get(), 0}, bytes / 4 * 4, &zero, sizeof(zero));
    }
    setup_done_ = false;
}

void Executor::forget_constants() {
    if (!brief_scratch_ || own_constants(*plan_).empty() || !plan_->literals.empty()) return;
    brief_constants_ = true;
    for (const std::size_t index : own_constants(*plan_)) blocks_[index].reset();
}

void Executor::release_bindings() noexcept {
    for (Binding& binding : bound_) binding.buffer.reset();
    release_scratch();
}

void Executor::release_scratch() noexcept {
    if (!brief_scratch_ && shared_slabs_ == nullptr) return;
    for (std::shared_ptr<Buffer>& slab : slabs_) slab.reset();
    if (brief_constants_)
        for (const std::size_t index : own_constants(*plan_)) blocks_[index].reset();
}

std::uint64_t Executor::kept_bytes(bool with_blocks_of_net) const {
    std::uint64_t bytes = 0;
    for (const std::shared_ptr<Buffer>& slab : slabs_)
        if (slab && shared_slabs_ == nullptr) bytes += slab->bytes();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        const Block& block = plan_->blocks[i];
        if (blocks_[i] && !block.memory && (with_blocks_of_net || is_own(block)))
            bytes += blocks_[i]->bytes();
    }
    return bytes;
}

std::byte* Executor::slot(const std::string& name) {
    const auto found = std::find(std::begin(scalar_names), std::end(scalar_names), name);
    require(found != std::end(scalar_names), "there is no scalar '", name, "'");
    scalars_dirty_ = true;
    return scalars_.data() + (found - std::begin(scalar_names)) * 8;
}

void Executor::set_scalar(const std::string& name, double value) {
    const auto single = static_cast<float>(value);
    std::memcpy(slot(name), &single, sizeof(single));
}

void Executor::set_integer(const std::string& name, std::uint64_t value) {
    std::memcpy(slot(name), &value, sizeof(value));
}

void Executor::set_scalars(std::span<const Scalar> values) {
    for (const Step& step : plan_->steps) step.launch->set_scalars(values);
}

void Executor::take_over(const Executor& other) {
    scalars_ = other.scalars_;
    if (states_ == other.states_) kept_ = other.kept_;
    scalars_dirty_ = true;
}

void Executor::prepare_run() {
    Access::impl(context_).require_runs();
    if (scalars_dirty_ && scalar_block_ >= 0) {
        // A fill copies its pattern during the call, so no host memory has to outlive it.
        const Buffer* block = blocks_[static_cast<std::size_t>(scalar_block_)].get();
        Access::impl(context_).queue().fill({block, 0}, scalar_bytes, scalars_.data(),
                                            scalar_bytes);
    }
    scalars_dirty_ = false;
    if (setup_done_) return;
    run_setup();
    setup_done_ = true;
    setup_found_ = false;
    if (kept_values_ == nullptr || brief_constants_) return;
    for (const auto& [content, place] : plan_->kept)
        kept_values_->add(content, blocks_[static_cast<std::size_t>(place.index)], place.offset);
}

void Executor::set_up() {
    running_ = nullptr;
    try {
        prepare_run();
    } catch (const Error& error) {
        if (running_ != nullptr && blames_values(error)) throw named(*running_, error);
        if (running_ != nullptr && !running_->disable_key().empty())
            launch_failed(*running_, Part::forward, error);
        throw;
    }
}

void Executor::fetch(int external) {
    running_ = nullptr;  // a failure here is not the failure of a launch
    bind(external, supply_->fetch(plan_->externals[static_cast<std::size_t>(external)]));
}

void Executor::run_setup() {
    std::map<int, std::size_t> last;  // by fetched external: the last step that reads it
    if (supply_ != nullptr) {
        for (std::size_t i = 0; i < bound_.size(); ++i) {
            const External& external = plan_->externals[i];
            if (external.kind != External::Kind::parameter) continue;
            // Data left by a failed setup are useless, because parameters may have changed.
            if (external.setup_only) bound_[i].buffer.reset();
            if (!external.setup_only && !bound_[i].buffer) fetch(static_cast<int>(i));
        }
        for (std::size_t i = 0; i < setup_bound_.size(); ++i)
            for (const auto& [operand, external] : setup_bound_[i].externals)
                if (plan_->externals[static_cast<std::size_t>(external)].setup_only && !is_found(i))
                    last[external] = i;
    }
    for (std::size_t i = 0; i < plan_->setup.size(); ++i) {
        if (is_found(i)) continue;
        Bound& bound = setup_bound_[i];
        for (const auto& [operand, external] : bound.externals)
            if (last.count(external) && !bound_[static_cast<std::size_t>(external)].buffer)
                fetch(external);
        running_ = &plan_->setup[i];
        enqueue(plan_->setup[i], bound);
        bool let_go = false;
        for (const auto& [operand, external] : bound.externals) {
            const auto found = last.find(external);
            if (found == last.end() || found->second != i) continue;
            bound_[static_cast<std::size_t>(external)].buffer.reset();
            let_go = true;
        }
        // Wait, so that its memory is free before the next parameter is fetched.
        if (!let_go) continue;
        running_ = nullptr;  // an error here is of work before
        Access::impl(context_).queue().finish();
    }
    if (supply_ != nullptr) supply_->done();
}

void Executor::touch_written() {
    const bool changes_state = !plan_->graph.assignments.empty();
    for (std::size_t i = 0; i < bound_.size(); ++i) {
        const External::Kind kind = plan_->externals[i].kind;
        const bool read_only =
            kind == External::Kind::input || (kind == External::Kind::parameter && !changes_state);
        if (!read_only && bound_[i].buffer) bound_[i].buffer->touch();
    }
    if (changes_state)
        for (const auto& block : blocks_)
            if (block) block->touch();
}

void Executor::check_params() {
    if (plan_->setup.empty()) return;
    std::size_t at = 0;
    bool changed = false;
    const auto note = [&](std::uint64_t now) {
        if (at == setup_params_.size()) setup_params_.push_back(~now);
        changed = changed || setup_params_[at] != now;
        setup_params_[at++] = now;
    };
    for (std::size_t i = 0; i < bound_.size(); ++i) {
        if (plan_->externals[i].kind != External::Kind::parameter || !bound_[i].buffer) continue;
        const Buffer& buffer = *bound_[i].buffer;
        changed = changed || buffer.foreign();
        note(buffer.id());
        note(buffer.version());
        note(bound_[i].byte_offset);
    }
    if (changed) params_changed();
}

void Executor::enqueue(const Step& step, Bound& bound) {
    for (const auto& [operand, external] : bound.externals)
        bound.operands[operand] = resolve(step.operands[operand]);
    for (const std::size_t operand : bound.scratch)
        bound.operands[operand] = resolve(step.operands[operand]);
    step.launch->enqueue(Access::impl(context_).queue(), bound.operands);
}

void Executor::run(Part part, const AfterStep& after) {
    bool& proven = proven_[static_cast<std::size_t>(part)];
    const bool trial = !proven || (part == Part::forward && has_backward_ &&
                                   !proven_[static_cast<std::size_t>(Part::backward)]);
    if (part == Part::forward && trial) keep_states();
    const bool whole = part <= Part::backward;
    running_ = nullptr;
    states_changed_ = false;
    try {
        static const AfterStep nothing;
        run_steps(part, proven ? after : nothing);
    } catch (const Error& error) {
        if (running_ != nullptr && blames_values(error)) {
            if (whole && !proven) restore_states();
            throw named(*running_, error);
        }
        if (proven) throw;
        if (running_ != nullptr && !running_->disable_key().empty() && (whole || !states_changed_))
            launch_failed(*running_, part, error);
        throw;
    }
    proven = true;
}

void Executor::run_steps(Part part, const AfterStep& after) {
    prepare_run();
    const auto find_memory = [this](const Place& place) { return resolve(place); };
    std::size_t next = 0;  // the next chain
    for (std::size_t i = 0; i < plan_->steps.size(); ++i) {
        if (plan_->steps[i].part != part) continue;
        if (next < chains_.size() && chains_[next].first == i) {
            if (chains_[next].chain->enqueue(find_memory)) {
                i = chains_[next++].last - 1;
                continue;
            }
            chains_.clear();
        }
        running_ = &plan_->steps[i];
        enqueue(plan_->steps[i], step_bound_[i]);
        states_changed_ = states_changed_ || part >= Part::accumulate;
        if (!after) continue;
        running_ = nullptr;  // an error here is not one of the step
        after(i);
    }
    touch_written();
}

void Executor::launch_failed(const Step& step, Part part, const Error& error) {
    const std::string engine =
        step.engine != nullptr ? cat("engine ", step.engine->name(), ": ") : "";
    const Error whole(error.kind(),
                      cat("[", step.type, " '", step.name, "'] ", engine, error.what()));
    if (part <= Part::backward) restore_states();
    EngineFailed failed(EngineFailed::Kind::launch, whole, {{step.disable_key(), error.what()}});
    failed.rerun_forward = part == Part::backward;
    throw failed;
}

void Executor::run_stepwise(Part part, const std::function<bool(const Step&)>& visit) {
    prepare_run();
    for (std::size_t i = 0; i < plan_->steps.size(); ++i) {
        if (plan_->steps[i].part != part) continue;
        enqueue(plan_->steps[i], step_bound_[i]);
        Access::impl(context_).queue().finish();
        if (!visit(plan_->steps[i])) return;
    }
}

Tensor Executor::tensor(ValueId value) const {
    const Place& place = plan_->places.at(static_cast<std::size_t>(value));
    const auto index = static_cast<std::size_t>(place.index);
    const TensorSpec& spec = plan_->graph.spec(value);
    if (place.kind == Place::Kind::block)
        return Access::tensor(context_, blocks_[index], place.offset, spec.shape, spec.dtype);
    return {};
}

Tensor Executor::tensor(int block, std::uint64_t byte_offset, const Shape& shape,
                        DType dtype) const {
    return Access::tensor(context_, blocks_.at(static_cast<std::size_t>(block)), byte_offset, shape,
                          dtype);
}

void Executor::read(const Place& place, void* data, std::uint64_t bytes) const {
    Access::impl(context_).queue().read(resolve(place), data, bytes, true);
}

}  // namespace dlprim
