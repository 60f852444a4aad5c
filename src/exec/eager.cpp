// SPDX-License-Identifier: MIT
// Eager calls: memory is bound to a plan of the cache, and the plan is enqueued.
#include "exec/eager.hpp"

#include "base/text.hpp"
#include "exec/eager_cache.hpp"
#include "exec/eager_overlap.hpp"
#include "exec/eager_views.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/deferred.hpp"
#include "runtime/launches_later.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

namespace dlprim {

namespace {

/// The tensor on whose device the call runs: the first of inputs, parameters and `out`.
const Tensor& device_giver(const EagerCall& call) {
    if (!call.inputs.empty()) return call.inputs[0];
    if (!call.params.empty()) return call.params[0];
    for (const Tensor& tensor : call.how.out)
        if (tensor.defined()) return tensor;
    fail(ErrorKind::invalid_argument, call.type,
         " needs at least one tensor, on whose device it runs");
}

const Context& context_of(const EagerCall& call) {
    const Tensor& first = device_giver(call);
    const auto check = [&](const Tensor& tensor) {
        require(tensor.defined(), call.type, " got an empty tensor");
        require(tensor.context() == first.context(), call.type,
                " got tensors of different contexts");
    };
    for (const auto& list : {call.inputs, call.params, call.output_gradients})
        for (const Tensor& tensor : list) check(tensor);
    for (const Tensor& tensor : call.how.out)
        if (tensor.defined()) check(tensor);  // undefined tensors are outputs to be made
    return first.context();
}

/// Whether the tensor is all of the deferred contents, in row-major order.
bool is_whole(const Tensor& tensor, const Deferred& deferred) {
    return tensor.byte_offset() == 0 && tensor.shape() == deferred.shape() && tensor.contiguous();
}

/// The memory that the call reads. Inputs and output gradients stay in the layout that they have.
std::vector<EagerOperand> operands_of(const EagerCall& call) {
    std::vector<EagerOperand> operands;
    operands.reserve(call.inputs.size() + call.params.size() + call.output_gradients.size());
    const auto add = [&](const Tensor& tensor, bool as_it_lies) {
        if (const Deferred* deferred = Access::deferred(tensor).get();
            deferred && as_it_lies && is_whole(tensor, *deferred))
            if (std::shared_ptr<Buffer> contents = deferred->contents()) {
                const std::uint64_t bytes = contents->bytes();
                operands.push_back({std::move(contents), 0, &deferred->layout(), bytes});
                return;
            }
        operands.push_back(operand_of(tensor));
    };
    for (const Tensor& tensor : call.inputs) add(tensor, true);
    for (const Tensor& tensor : call.params) add(tensor, false);
    for (const Tensor& tensor : call.output_gradients) add(tensor, true);
    return operands;
}

void check_out(const EagerCall& call, const EagerEntry& entry) {
    const auto& out = call.how.out;
    require(out.size() <= entry.results.size(), call.type, " makes ", entry.results.size(),
            " tensors, `out` has ", out.size());
    for (const auto& [is_result, i] : entry.bindings) {
        if (!is_result || i >= out.size() || !out[i].defined()) continue;
        check_operand(call, "out tensor", i, out[i], entry.results[i].spec);
        if (!out[i].contiguous()) check_strided_out(call, i);
    }
}

/// Allocates a result.
Tensor make_result(const Context& context, const EagerEntry::Result& result) {
    const Shape& shape = result.spec.shape;
    const DType dtype = result.spec.dtype;
    std::shared_ptr<Buffer> memory =
        Access::impl(context).allocate_cached(storage_bytes(shape, dtype, result.layout));
    if (result.layout.is_plain())
        return Access::tensor(context, std::move(memory), 0, shape, dtype);
    return Access::tensor(std::make_shared<Deferred>(context, std::move(memory), result.layout,
                                                     shape, dtype, convert_result));
}

/// The memory of a call's results, by index: `out` tensors if there are any, else new ones.
std::vector<EagerOperand> results_of(const Context& context, const EagerCall& call,
                                     const EagerEntry& entry, std::vector<Tensor>& results) {
    std::vector<EagerOperand> places(results.size());
    for (const auto& [is_result, index] : entry.bindings) {
        if (!is_result) continue;
        Tensor& result = results[index];
        const bool given = index < call.how.out.size() && call.how.out[index].defined();
        result = given ? call.how.out[index] : make_result(context, entry.results[index]);
        Deferred* const deferred = Access::deferred(result).get();
        if (given && deferred && is_whole(result, *deferred)) deferred->overwrite();
        if (!given && deferred)
            places[index] = {deferred->contents(), 0, nullptr, result.bytes()};
        else
            places[index] = operand_of(result);
    }
    return places;
}

/// Runs an entry whose memory is bound.
void run_bound(EagerEntry& entry, const ops::CallOptions& how, bool backward) {
    Executor& executor = entry.call->executor();
    if (entry.uses_scalars) {
        executor.set_integer("@seed", how.seed);
        executor.set_integer("@step", how.step);
    }
    if (!how.scalars.empty()) executor.set_scalars(how.scalars);
    executor.check_params();
    executor.take_scratch();
    executor.run(Part::forward);
    if (backward) executor.run(Part::backward);
}

/// Puts the call off. Its record has no tensors: they would count as users of the context.
void put_off_call(EagerCache& cache, const Context& context, const EagerCall& call,
                  const std::shared_ptr<EagerEntry>& entry, std::span<const EagerOperand> operands,
                  std::span<const EagerOperand> places) {
    std::vector<PlannedCall::Place> memory;
    for (const auto& [is_result, index] : entry->bindings) {
        const EagerOperand& operand = is_result ? places[index] : operands[index];
        memory.push_back({operand.buffer, operand.byte_offset});
    }
    ops::CallOptions how;
    how.scalars = call.how.scalars;
    how.seed = call.how.seed;
    how.step = call.how.step;
    const auto make = [inner = Access::impl(context).inner(), &cache, entry, how,
                       memory = std::move(memory), backward = call.backward] {
        std::vector<PlannedCall::Place> lying = memory;
        entry->call->follow(lying, cache.moved);
        const auto attempt = [&] {
            entry->call->finish(inner, cache.store);
            const BoundMemory bound(entry->call->executor());
            entry->call->bind(inner, lying);
            run_bound(*entry, how, backward);
            entry->call->place_results(inner, cache.moved);
            Access::impl(inner).queue().flush();
        };
        retry_without_failed_engines(Access::impl(inner), attempt,
                                     [&](const EngineFailed&) { entry->call->start_again(); });
    };
    cache.later->push(std::string(call.type), entry->call->programs(), make);
}

std::vector<Tensor> run_once(const Context& context, const EagerCall& call,
                             std::span<const EagerOperand> given) {
    EagerCache& cache = cache_of(context);
    std::unique_lock lock(cache.mutex);
    const std::shared_ptr<EagerEntry> entry = find_entry(cache, context, call, given);
    lock.unlock();
    check_gradients(call, entry->gradients);
    check_out(call, *entry);
    std::vector<EagerOperand> gathered;
    const std::span<const EagerOperand> operands = gather_written(context, *entry, given, gathered);
    std::vector<Tensor> results(entry->results.size());
    std::vector<EagerOperand> places = results_of(context, call, *entry, results);
    std::vector<Detour> detours;
    if (!call.how.out.empty()) detours = avoid_overlaps(context, call, *entry, operands, places);
    for (const std::size_t i : entry->written)
        if (given[i].view != nullptr)
            detours.push_back({operands[i], given[i], given[i].view->shape().strides()});

    lock.lock();
    if (entry->forgotten) {
        lock.unlock();
        return run_once(context, call, given);
    }
    find_later(cache, context);  // another thread may have had the mutex
    if (!detours.empty()) call_at_once(cache);
    if (is_put_off(cache, context, *entry->call)) {
        put_off_call(cache, context, call, entry, operands, places);
        return results;
    }
    if (entry->call->replaced()) {
        lock.unlock();
        return run_once(context, call, given);
    }
    Executor& executor = entry->call->executor();
    const BoundMemory bound(executor);
    const Part last = call.backward ? Part::backward : Part::forward;
    const LaunchesLater later(executor.proven(last) ? call.type : std::string_view());
    for (std::size_t i = 0; i < entry->bindings.size(); ++i) {
        const auto [is_result, index] = entry->bindings[i];
        const EagerOperand& operand = is_result ? places[index] : operands[index];
        executor.bind(static_cast<int>(i), operand.buffer, operand.byte_offset);
    }
    run_bound(*entry, call.how, call.backward);
    finish_detours(context, cache.copies, detours);
    Access::impl(context).queue().flush();
    return results;
}

/// Whether all `out` tensors are whole tensors whose contents are in a hidden layout.
bool writes_hidden(const EagerCall& call) {
    if (call.backward) return false;
    bool any = false;
    for (const Tensor& out : call.how.out) {
        if (!out.defined()) continue;
        const Deferred* const deferred = Access::deferred(out).get();
        if (deferred == nullptr || !is_whole(out, *deferred) || !deferred->contents()) return false;
        any = true;
    }
    return any;
}

std::vector<Tensor> run(const EagerCall& call);

/// A call that writes to such tensors, usually in place (relu_, add_ between two convolutions). Its
/// results are made in the layout that suits their engine, and become the contents of `out`.
std::vector<Tensor> run_to_hidden(const EagerCall& call) {
    const std::vector<Tensor>& out = call.how.out;
    ops::CallOptions how = call.how;
    how.out.clear();
    std::vector<Tensor> results = run({call.type, call.options, call.inputs, call.params,
                                       call.output_gradients, how, call.backward, call.function});
    require(out.size() <= results.size(), call.type, " makes ", results.size(),
            " tensors, `out` has ", out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (!out[i].defined()) continue;
        check_operand(call, "out tensor", i, out[i], {results[i].shape(), results[i].dtype()});
        const Deferred* const made = Access::deferred(results[i]).get();
        std::shared_ptr<Buffer> contents = made != nullptr ? made->contents() : nullptr;
        const Layout layout = contents ? made->layout() : Layout::plain();
        if (!contents) contents = Access::buffer(results[i]);
        if (!Access::deferred(out[i])->take(std::move(contents), layout)) {
            Tensor target = out[i];
            results[i].copy_to(target);
        }
        results[i] = out[i];
    }
    return results;
}

std::vector<Tensor> run(const EagerCall& call) {
    if (writes_hidden(call)) return run_to_hidden(call);
    const Context& context = context_of(call);
    // Computed once for all attempts: if an `out` tensor is also an input, the first attempt
    // discards its contents.
    const std::vector<EagerOperand> operands = operands_of(call);
    return retry_without_failed_engines(
        Access::impl(context), [&] { return run_once(context, call, operands); },
        [&](const EngineFailed&) { forget_entry(context, call, operands); });
}

}  // namespace

std::shared_ptr<EagerEntry> planned_entry(const EagerCall& call) {
    const Context& context = context_of(call);
    const std::vector<EagerOperand> operands = operands_of(call);
    EagerCache& cache = cache_of(context);
    const std::lock_guard lock(cache.mutex);
    return find_entry(cache, context, call, operands);
}

std::vector<Tensor> eager_call(std::string_view type, const EagerOptions& options,
                               std::span<const Tensor> inputs, std::span<const Tensor> params,
                               const ops::CallOptions& call) {
    return run({type, options, inputs, params, {}, call, false});
}

std::vector<Tensor> eager_backward(std::string_view type, const EagerOptions& options,
                                   std::span<const Tensor> inputs, std::span<const Tensor> params,
                                   std::span<const Tensor> output_gradients,
                                   const ops::CallOptions& call) {
    return run({type, options, inputs, params, output_gradients, call, true});
}

std::vector<Tensor> eager_function(const EagerFunction& function, std::span<const Tensor> inputs,
                                   std::span<const Tensor> params, const ops::CallOptions& call) {
    return run({function.name, *function.options, inputs, params, {}, call, false, &function});
}

const Plan& eager_plan(std::string_view type, const Attrs& options, std::span<const Tensor> inputs,
                       std::span<const Tensor> params, std::span<const Tensor> output_gradients,
                       const ops::CallOptions& call) {
    const std::shared_ptr<const EagerOptions> known = eager_options(options);
    const EagerCall wanted{
        type, *known, inputs, params, output_gradients, call, !output_gradients.empty()};
    const Context& context = context_of(wanted);
    const std::vector<EagerOperand> operands = operands_of(wanted);
    EagerCache& cache = cache_of(context);
    const std::lock_guard lock(cache.mutex);
    const std::shared_ptr<EagerEntry> entry = find_entry(cache, context, wanted, operands);
    call_at_once(cache);
    is_put_off(cache, context, *entry->call);  // no: it is finished
    entry->call->drop_sketch();
    return entry->call->plan();
}

}  // namespace dlprim
