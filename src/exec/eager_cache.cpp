// SPDX-License-Identifier: MIT
// The cache of eager calls: keys, entries, and conversions of results.
#include "exec/eager_cache.hpp"

#include "base/text.hpp"
#include "exec/eager_views.hpp"
#include "plan/trust/trust.hpp"
#include "runtime/counting.hpp"
#include "runtime/launches_later.hpp"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <utility>

namespace dlprim {

EagerCache& cache_of(const Context& context) {
    const auto make = []() -> std::unique_ptr<ContextImpl::Attachment> {
        return std::make_unique<EagerCache>();
    };
    return static_cast<EagerCache&>(Access::impl(context).attachment(make));
}

namespace {

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

}  // namespace

void find_later(EagerCache& cache, const Context& context) {
    PutOffCalls* const found = put_off_calls(Access::impl(context).queue());
    if (found != nullptr) cache.later = found;
    // What holds for the calling thread alone would not hold for the other one.
    const bool here = found == nullptr || EnginesUnchecked::active() || Uncounted::active();
    if (here && cache.later != nullptr) cache.later->wait();
    cache.may_put_off = !here;
    if (cache.later != nullptr && !cache.later->any()) cache.moved.clear();
}

void call_at_once(EagerCache& cache) {
    if (cache.later != nullptr) cache.later->wait();
    cache.may_put_off = false;
}

bool is_put_off(EagerCache& cache, const Context& context, PlannedCall& call) {
    if (cache.may_put_off && (cache.later->any() || (!call.finished() && !call.programs().empty())))
        return true;
    call.finish(Access::impl(context).inner(), cache.store);
    return false;
}

std::shared_ptr<EagerEntry> find_entry(EagerCache& cache, const Context& context,
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
    EagerCache& cache = cache_of(context);
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

namespace {

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
    const auto attempt = [&] {
        conversion.finish(context, store);
        Executor& executor = conversion.executor();
        const BoundMemory bound(executor);
        const LaunchesLater later(executor.proven(Part::forward) ? "Reorder" : "");
        executor.bind(0, contents, 0);
        executor.bind(1, plain, 0);
        executor.take_scratch();
        executor.run(Part::forward);
        Access::impl(context).queue().flush();
    };
    retry_without_failed_engines(Access::impl(context), attempt,
                                 [&](const EngineFailed&) { conversion.start_again(); });
}

}  // namespace

void convert_result(const Deferred& from, const std::shared_ptr<Buffer>& contents,
                    const std::shared_ptr<Buffer>& plain) {
    EagerCache& cache = cache_of(from.context());
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

void enqueue_copy(const Context& context, const Shape& shape, std::size_t element_bytes,
                  const StridedPlace& from, const StridedPlace& to) {
    EagerCache& cache = cache_of(context);
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
    if (known->size() >= EagerCache::most_kept) known->clear();
    auto& slot = (*known)[key];
    if (!slot) slot = std::make_shared<const EagerOptions>(EagerOptions{attrs, new_options_id()});
    return slot;
}

bool are_finished(const Context& context, std::span<const std::shared_ptr<EagerEntry>> entries) {
    EagerCache& cache = cache_of(context);
    const std::lock_guard lock(cache.mutex);
    find_later(cache, context);
    return std::none_of(entries.begin(), entries.end(), [&](const auto& entry) {
        return is_put_off(cache, context, *entry->call);
    });
}

ContextImpl::Attachment& eager_extra(const Context& context,
                                     std::unique_ptr<ContextImpl::Attachment> (*make)()) {
    EagerCache& cache = cache_of(context);
    const std::lock_guard lock(cache.mutex);
    if (!cache.extra) cache.extra = make();
    return *cache.extra;
}

std::shared_ptr<const EagerOptions> unique_options() {
    return std::make_shared<const EagerOptions>(EagerOptions{{}, new_options_id()});
}

void forget_function(const Context& context, const EagerFunction& function) {
    EagerCache& cache = cache_of(context);
    const std::lock_guard lock(cache.mutex);
    std::string begin;
    append_call(begin, function.name, *function.options);
    cache.entries.erase_if([&](std::string_view key) { return key.starts_with(begin); });
}

}  // namespace dlprim
