// SPDX-License-Identifier: MIT
// Eager calls: plans are cached by problem, so a repeated call only looks up a plan, binds memory
// and enqueues.
#include "exec/eager.hpp"

#include "base/lru_map.hpp"
#include "base/text.hpp"
#include "exec/copy_launches.hpp"
#include "exec/eager_entry.hpp"
#include "exec/eager_overlap.hpp"
#include "exec/eager_views.hpp"
#include "exec/eager_weights.hpp"
#include "plan/trust/trust.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/counting.hpp"
#include "runtime/deferred.hpp"
#include "runtime/launches_later.hpp"
#include "runtime/put_off_calls.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace dlprim {

namespace {

constexpr std::size_t most_kept = 4096;

/// The eager calls of one context. They share scratch memory, because the queue is in order and
/// each call of a thread is enqueued as a whole. Executors have inner() handles of the context,
/// which owns this cache.
struct ContextCache : ContextImpl::Attachment {
    ContextCache() = default;
    ContextCache(const ContextCache&) = delete;
    ContextCache& operator=(const ContextCache&) = delete;
    /// Calls that are put off use the members.
    ~ContextCache() override {
        if (later != nullptr) later->settle();
    }
    /// Protects the members below and the executors in them. While it is held, no Deferred may be
    /// asked for its memory, because that may start a conversion, which locks this mutex.
    std::mutex mutex;
    /// Entries by problem. If a plan keeps data derived from its parameters (packed weights), the
    /// entry belongs to those parameters, so that layers of the same shape do not replace each
    /// other's data. Its key is then the problem with the parameters, and the entry of the problem
    /// alone is null. Parameters that change all the time share an entry that keeps no such data.
    LruMap<std::shared_ptr<EagerEntry>> entries{most_kept};
    WeightUses weights{most_kept};
    LruMap<std::shared_ptr<PlannedCall>> conversions{most_kept};  ///< of results to plain
    CopyLaunches copies;                                          ///< of strided views
    BlockStore store;
    /// Where calls are put off whose programs are being compiled. They use plans, copies and store
    /// without the mutex. So whoever holds it touches these only while nothing is put off.
    PutOffCalls* later = nullptr;
    MovedResults moved;                              ///< of calls that were put off
    bool may_put_off = false;                        ///< whether the present call may be put off
    std::unique_ptr<ContextImpl::Attachment> extra;  ///< of eager_extra()
    std::string key;                                 ///< the key of the current call
};

ContextCache& cache_of(const Context& context) {
    const auto make = []() -> std::unique_ptr<ContextImpl::Attachment> {
        return std::make_unique<ContextCache>();
    };
    return static_cast<ContextCache&>(Access::impl(context).attachment(make));
}

/// Keys are bytes. Data of variable size are preceded by their size.
template <typename T>
void append(std::string& key, const T& value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_text(std::string& key, std::string_view text) {
    append(key, text.size());
    key += text;
}

void append_shape(std::string& key, const Shape& shape, DType dtype) {
    key += static_cast<char>(dtype);
    key += static_cast<char>(shape.rank());
    for (const std::int64_t size : shape.dims()) append(key, size);
}

void append_layout(std::string& key, const Layout* layout) {
    key += static_cast<char>(layout == nullptr ? Layout::Kind::plain : layout->kind);
    if (layout != nullptr) append(key, layout->block);
}

void append_call(std::string& key, std::string_view type, const EagerOptions& options) {
    append_text(key, type);
    append(key, options.id);
}

void make_key(std::string& key, const EagerCall& call, std::span<const EagerOperand> operands) {
    key.clear();
    append_call(key, call.type, call.options);
    key += static_cast<char>((call.backward ? 1 : 0) + (call.how.training ? 2 : 0) +
                             (has_out(call) ? 4 : 0) + (EnginesUnchecked::active() ? 8 : 0));
    key += static_cast<char>(call.how.precision);
    append_text(key, call.how.engine);
    append(key, call.how.engines.size());
    for (const auto& [what, engine] : call.how.engines) {
        append_text(key, what);
        append_text(key, engine);
    }
    append(key, call.how.wanted.size());
    for (const bool wanted : call.how.wanted) key += static_cast<char>(wanted);
    // The values of scalars are no part of the problem.
    append(key, call.how.scalars.size());
    for (const Scalar& scalar : call.how.scalars) key += static_cast<char>(scalar.index());
    for (const auto& list : {call.inputs, call.params}) {
        append(key, list.size());
        for (const Tensor& tensor : list) append_shape(key, tensor.shape(), tensor.dtype());
    }
    for (const EagerOperand& operand : operands) {
        append_layout(key, operand.layout);
        if (operand.view != nullptr) append_view(key, *operand.view);
    }
    for (const Tensor& out : call.how.out) {
        key += out.defined() ? '\1' : '\0';
        if (out.defined() && is_view(out)) append_view(key, out);
    }
}

void add_params(std::string& key, const EagerCall& call, std::span<const EagerOperand> operands) {
    for (const EagerOperand& operand : operands.subspan(call.inputs.size(), call.params.size())) {
        append(key, operand.buffer->id());
        append(key, operand.buffer->offset() + operand.byte_offset);
    }
}

/// What a key has at its end for the entry whose parameters change from call to call.
constexpr std::string_view changing = "changing";

/// Looks, with the mutex, where calls may be put off now.
void find_later(ContextCache& cache, const Context& context) {
    PutOffCalls* const found = put_off_calls(Access::impl(context).queue());
    if (found != nullptr) cache.later = found;
    // What holds for the calling thread alone would not hold for the other one.
    const bool here = found == nullptr || EnginesUnchecked::active() || Uncounted::active();
    if (here && cache.later != nullptr) cache.later->wait();
    cache.may_put_off = !here;
    if (cache.later != nullptr && !cache.later->any()) cache.moved.clear();
}

/// Has the present call wait for all that are put off, and for its programs.
void call_at_once(ContextCache& cache) {
    if (cache.later != nullptr) cache.later->wait();
    cache.may_put_off = false;
}

/// Whether a call waits for others, or for its programs. Otherwise its plan is finished.
bool is_put_off(ContextCache& cache, const Context& context, PlannedCall& call) {
    if (cache.may_put_off && (cache.later->any() || (!call.finished() && !call.programs().empty())))
        return true;
    call.finish(Access::impl(context).inner(), cache.store);
    return false;
}

/// The caller holds `cache.mutex`.
std::shared_ptr<EagerEntry> find_entry(ContextCache& cache, const Context& context,
                                       const EagerCall& call,
                                       std::span<const EagerOperand> operands) {
    find_later(cache, context);
    const auto make = [&] {
        auto entry = make_eager_entry(Access::impl(context).inner(), call, operands, cache.store,
                                      cache.may_put_off);
        if (cache.may_put_off) cache.later->compile(entry->call->programs());
        return std::shared_ptr<EagerEntry>(std::move(entry));
    };
    std::string& key = cache.key;
    make_key(key, call, operands);
    const std::size_t problem = key.size();
    const auto* const found = cache.entries.find(key);
    const bool usable = found != nullptr && !(*found && (*found)->call->replaced());
    if (usable && *found) {
        // Nobody else has the entry, and none of its calls is put off.
        if (found->use_count() == 1 && !(cache.later != nullptr && cache.later->any()))
            (*found)->call->drop_sketch();
        return *found;
    }
    std::shared_ptr<EagerEntry> made;
    if (!usable) {
        made = make();
        // What is derived from constants of the operator serves all its calls.
        const bool packs = !call.params.empty() && !made->call->plan().setup.empty();
        cache.entries.insert(key, packs ? nullptr : made);
        if (!packs) return made;
    }
    add_params(key, call, operands);
    const bool keeps = cache.weights.worth_keeping(
        key, problem, call, operands.subspan(call.inputs.size(), call.params.size()));
    if (!keeps) {
        cache.entries.erase(key);
        key.resize(problem);
        key += changing;
    }
    if (const auto* known = cache.entries.find(key); known && !(*known)->call->replaced())
        return *known;
    if (!made) made = make();
    if (!keeps) made->call->forget_constants();
    return cache.entries.insert(key, std::move(made));
}

void forget_entry(const Context& context, const EagerCall& call,
                  std::span<const EagerOperand> operands) {
    ContextCache& cache = cache_of(context);
    const std::lock_guard lock(cache.mutex);
    const auto forget = [&] {
        if (const auto* found = cache.entries.find(cache.key); found && *found)
            (*found)->forgotten = true;  // another thread may be about to run it
        cache.entries.erase(cache.key);
    };
    make_key(cache.key, call, operands);
    const std::size_t problem = cache.key.size();
    forget();
    add_params(cache.key, call, operands);
    forget();
    cache.key.resize(problem);
    cache.key += changing;
    forget();
}

/// Releases the memory that an executor was given for a call, also if the call fails.
class BoundMemory {
  public:
    explicit BoundMemory(Executor& executor) : executor_(executor) {}
    BoundMemory(const BoundMemory&) = delete;
    BoundMemory& operator=(const BoundMemory&) = delete;
    ~BoundMemory() { executor_.release_bindings(); }

  private:
    Executor& executor_;
};

/// The plan that converts a value from its layout to plain.
std::shared_ptr<PlannedCall> make_conversion(const Deferred& from) {
    Graph graph;
    Value value;
    value.name = "result";
    value.spec = {from.shape(), from.dtype()};
    value.role = Role::input;
    const ValueId id = graph.add_value(std::move(value));
    graph.inputs.push_back(id);
    graph.outputs.emplace_back(id, "result");
    PlanOptions options;
    options.input_layouts[id] = from.layout();
    options.check_engines = EngineChecks::kinds;
    options.report = false;
    return std::make_shared<PlannedCall>(std::move(graph), std::move(options));
}

void run_conversion(const Context& context, PlannedCall& conversion, BlockStore& store,
                    const std::shared_ptr<Buffer>& contents, const std::shared_ptr<Buffer>& plain) {
    for (;;) try {
            conversion.finish(context, store);
            Executor& executor = conversion.executor();
            const BoundMemory bound(executor);
            const LaunchesLater later(executor.proven(Part::forward) ? "Reorder" : "");
            executor.bind(0, contents, 0);
            executor.bind(1, plain, 0);
            executor.take_scratch();
            executor.run(Part::forward);
            return Access::impl(context).queue().flush();
        } catch (const EngineFailure&) {
            conversion.start_again();  // without the failed engine
        }
}

/// Converts a result of an eager call to plain.
void convert_result(const Deferred& from, const std::shared_ptr<Buffer>& contents,
                    const std::shared_ptr<Buffer>& plain) {
    ContextCache& cache = cache_of(from.context());
    const std::lock_guard lock(cache.mutex);
    find_later(cache, from.context());
    const Context context = Access::impl(from.context()).inner();
    std::string& key = cache.key;
    key.clear();
    append_shape(key, from.shape(), from.dtype());
    append_layout(key, &from.layout());
    const auto* const found = cache.conversions.find(key);
    const std::shared_ptr<PlannedCall> conversion =
        found != nullptr ? *found : cache.conversions.insert(key, make_conversion(from));
    if (found == nullptr && cache.may_put_off) {
        conversion->sketch(context);
        cache.later->compile(conversion->programs());
    }
    if (!is_put_off(cache, context, *conversion))
        return run_conversion(context, *conversion, cache.store, contents, plain);
    cache.later->push("Reorder", conversion->programs(),
                      [context, conversion, &store = cache.store, contents, plain] {
                          run_conversion(context, *conversion, store, contents, plain);
                      });
}

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
void put_off_call(ContextCache& cache, const Context& context, const EagerCall& call,
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
        for (;;) try {
                entry->call->finish(inner, cache.store);
                const BoundMemory bound(entry->call->executor());
                entry->call->bind(inner, lying);
                run_bound(*entry, how, backward);
                entry->call->place_results(inner, cache.moved);
                return Access::impl(inner).queue().flush();
            } catch (const EngineFailure&) {
                entry->call->start_again();  // without the failed engine
            }
    };
    cache.later->push(std::string(call.type), entry->call->programs(), make);
}

std::vector<Tensor> run_once(const Context& context, const EagerCall& call,
                             std::span<const EagerOperand> given) {
    ContextCache& cache = cache_of(context);
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
    for (;;) {
        try {
            return run_once(context, call, operands);
        } catch (const EngineFailure&) {
            forget_entry(context, call, operands);  // planned again without the failed engine
        }
    }
}

}  // namespace

void enqueue_copy(const Context& context, const Shape& shape, std::size_t element_bytes,
                  const StridedPlace& from, const StridedPlace& to) {
    ContextCache& cache = cache_of(context);
    ContextImpl& device = Access::impl(context);
    const std::lock_guard lock(cache.mutex);
    const auto copy = [&device, &cache, shape, element_bytes, from, to] {
        cache.copies.copy(device, shape, element_bytes, from, to);
    };
    if (put_off_after_others(device.queue(), "copy", copy)) return;
    const LaunchesLater later("copy");
    copy();
}

namespace {

std::uint64_t new_options_id() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

}  // namespace

std::shared_ptr<const EagerOptions> eager_options(const Attrs& attrs) {
    static std::mutex mutex;
    static auto* known = new std::unordered_map<std::string, std::shared_ptr<const EagerOptions>>;
    std::string key = attrs.str();  // prints 2 and [2] alike
    for (const auto& item : attrs.items()) key += static_cast<char>('0' + item.second.index());
    const std::lock_guard lock(mutex);
    if (known->size() >= most_kept) known->clear();
    auto& slot = (*known)[key];
    if (!slot) slot = std::make_shared<const EagerOptions>(EagerOptions{attrs, new_options_id()});
    return slot;
}

bool are_finished(const Context& context, std::span<const std::shared_ptr<EagerEntry>> entries) {
    ContextCache& cache = cache_of(context);
    const std::lock_guard lock(cache.mutex);
    find_later(cache, context);
    return std::none_of(entries.begin(), entries.end(), [&](const auto& entry) {
        return is_put_off(cache, context, *entry->call);
    });
}

std::shared_ptr<EagerEntry> planned_entry(const EagerCall& call) {
    const Context& context = context_of(call);
    const std::vector<EagerOperand> operands = operands_of(call);
    ContextCache& cache = cache_of(context);
    const std::lock_guard lock(cache.mutex);
    return find_entry(cache, context, call, operands);
}

ContextImpl::Attachment& eager_extra(const Context& context,
                                     std::unique_ptr<ContextImpl::Attachment> (*make)()) {
    ContextCache& cache = cache_of(context);
    const std::lock_guard lock(cache.mutex);
    if (!cache.extra) cache.extra = make();
    return *cache.extra;
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

std::shared_ptr<const EagerOptions> unique_options() {
    return std::make_shared<const EagerOptions>(EagerOptions{{}, new_options_id()});
}

std::vector<Tensor> eager_function(const EagerFunction& function, std::span<const Tensor> inputs,
                                   std::span<const Tensor> params, const ops::CallOptions& call) {
    return run({function.name, *function.options, inputs, params, {}, call, false, &function});
}

void forget_function(const Context& context, const EagerFunction& function) {
    ContextCache& cache = cache_of(context);
    const std::lock_guard lock(cache.mutex);
    std::string begin;
    append_call(begin, function.name, *function.options);
    cache.entries.erase_if([&](std::string_view key) { return key.starts_with(begin); });
}

const Plan& eager_plan(std::string_view type, const Attrs& options, std::span<const Tensor> inputs,
                       std::span<const Tensor> params, std::span<const Tensor> output_gradients,
                       const ops::CallOptions& call) {
    const std::shared_ptr<const EagerOptions> known = eager_options(options);
    const EagerCall wanted{
        type, *known, inputs, params, output_gradients, call, !output_gradients.empty()};
    const Context& context = context_of(wanted);
    const std::vector<EagerOperand> operands = operands_of(wanted);
    ContextCache& cache = cache_of(context);
    const std::lock_guard lock(cache.mutex);
    const std::shared_ptr<EagerEntry> entry = find_entry(cache, context, wanted, operands);
    call_at_once(cache);
    is_put_off(cache, context, *entry->call);  // no: it is finished
    entry->call->drop_sketch();
    return entry->call->plan();
}

}  // namespace dlprim
