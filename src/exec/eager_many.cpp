// SPDX-License-Identifier: MIT
// pointwise_many: the kernels of single calls, planned as those, joined into few launches
// (engine/table_launch.hpp). What cannot be joined runs as single calls.
#include <dlprim/pointwise_many.hpp>

#include "base/lru_map.hpp"
#include "base/text.hpp"
#include "engine/table_launch.hpp"
#include "exec/eager_entry.hpp"
#include "exec/eager_views.hpp"
#include "exec/known_options.hpp"
#include "runtime/launches_later.hpp"
#include "runtime/program_builds.hpp"
#include "runtime/put_off_calls.hpp"

#include <dlprim/log.hpp>
#include <dlprim/ops.hpp>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

namespace dlprim {

namespace {

using Lists = std::vector<std::vector<Tensor>>;

/// Calls that share launches, and the operands of each in the order of its kernel.
struct Joined {
    std::vector<std::size_t> calls;
    /// Per call: which input or result (true) an operand of the kernel is.
    std::vector<std::pair<bool, std::size_t>> operands;
    std::unique_ptr<TableLaunch> launch;
};

/// An operand of a launch.
struct PlacedMemory {
    std::shared_ptr<Buffer> buffer;
    std::uint64_t byte_offset;
    bool is_result;
};

/// Lists of one problem: one program, types and sizes.
struct ManyEntry {
    std::vector<Joined> joined;
    std::vector<std::vector<DType>> results;  ///< types, by call
    bool single = false;                      ///< whether it runs as single calls
    /// Plans whose engines are checked before the first launch.
    std::vector<std::shared_ptr<EagerEntry>> unfinished;
    /// Programs of the launches. Until processes have compiled them, and the plans are finished,
    /// the kernels of single calls serve, which have the same bits and are compiled first.
    PendingPrograms tables;
};

struct ManyCache : ContextImpl::Attachment {
    std::mutex mutex;  ///< also for the launches of entries
    LruMap<std::shared_ptr<ManyEntry>> entries{256};
};

ManyCache& many_cache_of(const Context& context) {
    return static_cast<ManyCache&>(
        eager_extra(context, []() -> std::unique_ptr<ContextImpl::Attachment> {
            return std::make_unique<ManyCache>();
        }));
}

std::shared_ptr<const EagerOptions> options_of(std::string_view code) {
    static auto* known = new KnownOptions;
    return known->find(code, [&] { return Attrs{{"code", std::string(code)}}; });
}

/// Tensor k of a list, in which one tensor serves all.
const Tensor& at(const std::vector<Tensor>& list, std::size_t k) {
    return list[list.size() == 1 ? 0 : k];
}

std::size_t count_of(const Lists& inputs, const Lists& outs) {
    require(!inputs.empty(), "pointwise_many() needs at least one list of tensors");
    std::size_t count = inputs[0].size();
    for (const auto& list : inputs) count = list.size() == 1 ? count : list.size();
    for (const Lists* lists : {&inputs, &outs})
        for (const auto& list : *lists)
            require(list.size() == count || (lists == &inputs && list.size() == 1),
                    "pointwise_many() got lists of ", count, " and of ", list.size(), " tensors");
    return count;
}

/// The calls: what each reads and writes of the caller's lists, which are not copied, since an
/// optimizer has hundreds of tensors in each step.
class Calls {
  public:
    /// Checks the lists.
    Calls(const Lists& inputs, const Lists& outs)
        : count_(count_of(inputs, outs)), inputs_(inputs.size()), outs_(outs.size()) {
        tensors_.reserve(count_ * (inputs_ + outs_));
        for (std::size_t k = 0; k < count_; ++k) add(inputs, outs, k);
    }
    std::size_t size() const { return count_; }
    std::span<const Tensor* const> inputs(std::size_t k) const {
        return std::span(tensors_).subspan(k * (inputs_ + outs_), inputs_);
    }
    std::span<const Tensor* const> outs(std::size_t k) const {
        return std::span(tensors_).subspan(k * (inputs_ + outs_) + inputs_, outs_);
    }
    /// Of the results of a call: that of the first tensor with all elements.
    const Shape& shape(std::size_t k) const { return *shapes_[k]; }
    const Context& context() const { return tensors_[0]->context(); }

  private:
    void add(const Lists& inputs, const Lists& outs, std::size_t k) {
        const Shape* shape = nullptr;
        for (const auto& list : inputs) {
            const Tensor& tensor = at(list, k);
            take(tensor);
            const std::int64_t own = tensor.shape().numel();
            if (shape == nullptr || (own != 1 && shape->numel() == 1)) shape = &tensor.shape();
            if (own != 1 && own != shape->numel())
                fail(ErrorKind::invalid_argument, "pointwise_many() got tensors of shapes ",
                     shape->str(), " and ", tensor.shape().str(), " at position ", k,
                     " of its lists");
        }
        shapes_.push_back(shape);
        for (const auto& list : outs) {
            take(list[k]);
            if (list[k].shape().numel() != shape->numel())
                fail(ErrorKind::invalid_argument, "pointwise_many() got an out tensor of shape ",
                     list[k].shape().str(), " for results of shape ", shape->str(), " at position ",
                     k, " of its lists");
        }
    }
    void take(const Tensor& tensor) {
        require(tensor.defined(), "pointwise_many() got an empty tensor");
        if (!tensor.contiguous())
            fail(ErrorKind::invalid_argument, "pointwise_many() got a strided view of shape ",
                 tensor.shape().str(), "; to_contiguous() copies it into a tensor of its own");
        tensors_.push_back(&tensor);
        require(tensor.context() == context(),
                "pointwise_many() got tensors of different contexts");
    }

    std::size_t count_, inputs_, outs_;
    std::vector<const Tensor*> tensors_;  ///< by call: the inputs, then the results
    std::vector<const Shape*> shapes_;
};

/// The tensors as calls take them.
std::vector<Tensor> flat(std::span<const Tensor* const> tensors) {
    std::vector<Tensor> made;
    made.reserve(tensors.size());
    for (const Tensor* tensor : tensors)
        made.push_back(tensor->shape().rank() == 1 ? *tensor
                                                   : tensor->reshape({tensor->shape().numel()}));
    return made;
}

std::string key_of(std::uint64_t options, std::size_t scalars, const Calls& calls) {
    std::string key = cat(options, ' ', scalars, '\n');
    const auto add = [&](const Tensor& tensor) {
        const std::int64_t count = tensor.shape().numel();
        key += static_cast<char>(tensor.dtype());
        key += is_view(tensor) ? 'u' : 'v';  // flat, but perhaps not aligned for whole vectors
        key.append(reinterpret_cast<const char*>(&count), sizeof(count));
    };
    for (std::size_t k = 0; k < calls.size(); ++k) {
        key += static_cast<char>(calls.outs(k).size());
        for (const Tensor* tensor : calls.inputs(k)) add(*tensor);
        for (const Tensor* tensor : calls.outs(k)) add(*tensor);
    }
    return key;
}

/// The kernel call of a planned entry, if it is nothing but one, on the entry's own operands.
const KernelCall* only_call(const EagerEntry& entry,
                            std::vector<std::pair<bool, std::size_t>>& operands) {
    const Plan& plan = entry.call->plan();
    if (!plan.setup.empty() || plan.steps.size() != 1) return nullptr;
    const Step& step = plan.steps[0];
    if (step.launch->calls().size() != 1) return nullptr;
    for (const Place& place : step.operands) {
        if (place.kind != Place::Kind::external || place.offset != 0) return nullptr;
        const auto& binding = entry.bindings[static_cast<std::size_t>(place.index)];
        operands.emplace_back(binding.result, binding.index);
    }
    return &step.launch->calls()[0];
}

/// A call's plan, kept until the launches are made of it.
struct Planned {
    std::shared_ptr<EagerEntry> entry;
    const KernelCall* call = nullptr;  ///< nullptr if it cannot be joined with others
    std::string key;                   ///< of calls with which it can be joined
    std::vector<std::pair<bool, std::size_t>> operands;  ///< see Joined
};

void check_outs(std::span<const Tensor* const> outs, const EagerEntry& entry, std::size_t k) {
    require(outs.size() <= entry.results.size(), "pointwise_many() makes ", entry.results.size(),
            " lists, `outs` has ", outs.size());
    for (std::size_t i = 0; i < outs.size(); ++i)
        if (outs[i]->dtype() != entry.results[i].spec.dtype)
            fail(ErrorKind::invalid_argument, "pointwise_many(): out tensor ", k, " of list ", i,
                 " is ", name_of(outs[i]->dtype()), ", wants ",
                 name_of(entry.results[i].spec.dtype));
}

Planned plan_call(const EagerOptions& options, const std::vector<double>& scalars,
                  const Calls& calls, std::size_t k) {
    const std::vector<Tensor> inputs = flat(calls.inputs(k));
    ops::CallOptions how;
    how.out = flat(calls.outs(k));
    how.scalars.assign(scalars.begin(), scalars.end());
    Planned planned;
    planned.entry = planned_entry({"Pointwise", options, inputs, {}, {}, how, false});
    check_outs(calls.outs(k), *planned.entry, k);
    for (const auto& result : planned.entry->results)
        if (result.spec.shape.numel() != calls.shape(k).numel()) return planned;  // it reduces
    const KernelCall* const only = only_call(*planned.entry, planned.operands);
    if (only == nullptr) return planned;
    if (std::optional<std::string> key = TableLaunch::key(*only)) {
        planned.call = only;
        planned.key = std::move(*key);
    }
    return planned;
}

std::shared_ptr<ManyEntry> make_entry(const EagerOptions& options,
                                      const std::vector<double>& scalars, const Calls& calls) {
    auto made = std::make_shared<ManyEntry>();
    std::vector<Planned> plans;
    std::vector<std::string> keys;  // by element of `joined`
    for (std::size_t k = 0; k < calls.size(); ++k) {
        plans.push_back(plan_call(options, scalars, calls, k));
        made->single = made->single || plans.back().call == nullptr;
    }
    if (made->single) return made;
    for (std::size_t k = 0; k < calls.size(); ++k) {
        const Planned& plan = plans[k];
        std::vector<DType> types;
        for (const auto& result : plan.entry->results) types.push_back(result.spec.dtype);
        made->results.push_back(std::move(types));
        const auto known = std::find(keys.begin(), keys.end(), plan.key);
        const auto number = static_cast<std::size_t>(known - keys.begin());
        if (known == keys.end()) {
            keys.push_back(plan.key);
            made->joined.push_back({{}, plan.operands, nullptr});
        }
        made->joined[number].calls.push_back(k);
    }
    ContextImpl& context = Access::impl(calls.context());
    PutOffCalls* const later = put_off_calls(context.queue());
    std::optional<NotedBuilds> noted;
    if (later != nullptr) noted.emplace();
    for (Joined& joined : made->joined) {
        std::vector<PlacedCall> placed;
        for (std::size_t i = 0; i < joined.calls.size(); ++i)
            placed.push_back({plans[joined.calls[i]].call, i * joined.operands.size()});
        joined.launch = std::make_unique<TableLaunch>(context, placed);
    }
    if (later == nullptr) return made;
    for (const auto& program : noted->programs())
        if (!program->compiled()) made->tables.push_back(program);
    later->compiles().add_spare(made->tables);
    for (const Planned& plan : plans) made->unfinished.push_back(plan.entry);
    return made;
}

/// Bytes [begin, end) of a cl_mem that call k reads or writes.
struct CallExtent {
    const void* handle;
    std::uint64_t begin, end;
    bool written;
};

/// Whether a call writes what another one reads or writes, or other bytes of what it reads. What it
/// writes in place is here once.
bool depend(std::vector<CallExtent> extents) {
    std::sort(extents.begin(), extents.end(), [](const CallExtent& a, const CallExtent& b) {
        return std::tie(a.handle, a.begin) < std::tie(b.handle, b.begin);
    });
    // Those that begin before others end, in the order of their begins.
    for (std::size_t i = 0; i < extents.size(); ++i) {
        const CallExtent& a = extents[i];
        for (std::size_t j = i + 1; j < extents.size(); ++j) {
            const CallExtent& b = extents[j];
            if (b.handle != a.handle || b.begin >= a.end) break;
            if (a.written || b.written) return true;
        }
    }
    return false;
}

class ManyCall {
  public:
    ManyCall(std::string_view code, const std::vector<double>& scalars, const Calls& calls)
        : code_(code), scalars_(scalars), calls_(calls) {}

    /// The results for which the caller has no tensors; the lists of others are empty.

    Lists run() {
        const std::shared_ptr<const EagerOptions> options = options_of(code_);
        const Context& context = calls_.context();
        ManyCache& cache = many_cache_of(context);
        std::shared_ptr<ManyEntry> entry;
        {
            const std::lock_guard lock(cache.mutex);
            const std::string key = key_of(options->id, scalars_.size(), calls_);
            const auto* found = cache.entries.find(key);
            entry = found != nullptr ? *found : cache.entries.insert(key, planned(*options));
            if (!is_ready(context, *entry)) {
                if (is_replaced(*entry)) cache.entries.erase(key);
                entry = nullptr;
            }
        }
        if (!entry || entry->single) return run_singly();
        Lists results = make_results(context, *entry);
        if (depend(extents_of(results))) return run_singly();
        const std::lock_guard lock(cache.mutex);
        ContextImpl& device = Access::impl(context);
        std::vector<std::vector<PlacedMemory>> memory;  // by launch
        for (const Joined& joined : entry->joined) memory.push_back(memory_of(joined, results));
        const auto make = [inner = device.inner(), entry, memory = std::move(memory),
                           scalars = scalars_] {
            enqueue(Access::impl(inner), *entry, memory, scalars);
        };
        if (put_off_after_others(device.queue(), "pointwise_many", make)) return results;
        const LaunchesLater later("pointwise_many");
        make();
        return results;
    }

  private:
    /// Whether no process works on the programs of the launches, and the plans are finished.
    static bool is_ready(const Context& context, ManyEntry& entry) {
        PutOffCalls* const calls = put_off_calls(Access::impl(context).queue());
        if (calls != nullptr && !calls->compiles().are_finished(entry.tables)) return false;
        if (entry.unfinished.empty()) return true;
        if (!are_finished(context, entry.unfinished) || is_replaced(entry)) return false;
        entry.unfinished.clear();
        return true;
    }
    /// Whether an engine failed that its launches use.
    static bool is_replaced(const ManyEntry& entry) {
        return std::any_of(entry.unfinished.begin(), entry.unfinished.end(),
                           [](const auto& plan) { return plan->call->replaced(); });
    }

    std::shared_ptr<ManyEntry> planned(const EagerOptions& options) const {
        try {
            return make_entry(options, scalars_, calls_);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::build) throw;
            log(LogLevel::warning, cat("pointwise_many() runs as single calls: ", error.what()));
            auto singly = std::make_shared<ManyEntry>();
            singly->single = true;
            return singly;
        }
    }

    Lists make_results(const Context& context, const ManyEntry& entry) const {
        Lists results(entry.results[0].size());
        for (std::size_t i = calls_.outs(0).size(); i < results.size(); ++i)
            for (std::size_t k = 0; k < calls_.size(); ++k)
                results[i].emplace_back(context, calls_.shape(k), entry.results[k][i]);
        return results;
    }

    const Tensor& result(const Lists& made, std::size_t i, std::size_t k) const {
        return i < calls_.outs(k).size() ? *calls_.outs(k)[i] : made[i][k];
    }

    std::vector<CallExtent> extents_of(const Lists& results) const {
        std::vector<CallExtent> extents;
        extents.reserve(calls_.size() * (calls_.inputs(0).size() + results.size()));
        std::size_t first = 0;  // of the call's results
        const auto add = [&](const Tensor& tensor, bool written) {
            if (tensor.bytes() == 0) return;
            const Buffer& buffer = *Access::buffer(tensor);
            const std::uint64_t begin = buffer.offset() + tensor.byte_offset();
            const CallExtent extent{buffer.handle(), begin, begin + tensor.bytes(), written};
            const auto in_place = [&](const CallExtent& other) {
                return other.written && !written && other.handle == extent.handle &&
                       other.begin == extent.begin && other.end == extent.end;
            };
            if (std::none_of(extents.begin() + static_cast<std::ptrdiff_t>(first), extents.end(),
                             in_place))
                extents.push_back(extent);
        };
        for (std::size_t k = 0; k < calls_.size(); ++k) {
            first = extents.size();
            for (std::size_t i = 0; i < results.size(); ++i) add(result(results, i, k), true);
            for (const Tensor* input : calls_.inputs(k)) add(*input, false);
        }
        return extents;
    }

    /// The memory of each operand of a launch.
    std::vector<PlacedMemory> memory_of(const Joined& joined, const Lists& results) const {
        std::vector<PlacedMemory> memory;
        memory.reserve(joined.calls.size() * joined.operands.size());
        for (const std::size_t k : joined.calls)
            for (const auto& [is_result, index] : joined.operands) {
                const Tensor& tensor =
                    is_result ? result(results, index, k) : *calls_.inputs(k)[index];
                memory.push_back({Access::buffer(tensor), tensor.byte_offset(), is_result});
            }
        return memory;
    }

    static void enqueue(ContextImpl& device, ManyEntry& entry,
                        const std::vector<std::vector<PlacedMemory>>& memory,
                        const std::vector<double>& scalars) {
        for (std::size_t i = 0; i < memory.size(); ++i) {
            std::vector<BufferRef> operands;
            operands.reserve(memory[i].size());
            for (const PlacedMemory& place : memory[i])
                operands.push_back({place.buffer.get(), place.byte_offset});
            TableLaunch& launch = *entry.joined[i].launch;
            launch.set_scalars(std::vector<Scalar>(scalars.begin(), scalars.end()));
            launch.enqueue(device.queue(), operands);
        }
        for (const auto& places : memory)
            for (const PlacedMemory& place : places)
                if (place.is_result) place.buffer->touch();
        device.queue().flush();
    }

    Lists run_singly() const {
        Lists results;
        for (std::size_t k = 0; k < calls_.size(); ++k) {
            ops::CallOptions how;
            how.out = flat(calls_.outs(k));
            std::vector<Tensor> made = ops::pointwise(code_, flat(calls_.inputs(k)), scalars_, how);
            results.resize(made.size());
            for (std::size_t i = how.out.size(); i < made.size(); ++i)
                results[i].push_back(made[i].shape().numel() == calls_.shape(k).numel()
                                         ? made[i].reshape(calls_.shape(k))
                                         : made[i]);
        }
        return results;
    }

    std::string_view code_;
    const std::vector<double>& scalars_;
    const Calls& calls_;
};

}  // namespace

namespace ops {

Lists pointwise_many(std::string_view code, const Lists& inputs, const std::vector<double>& scalars,
                     const Lists& outs) {
    const Calls calls(inputs, outs);
    if (calls.size() == 0) return Lists(outs.size());
    Lists results = ManyCall(code, scalars, calls).run();
    for (std::size_t i = 0; i < outs.size(); ++i) results.at(i) = outs[i];
    return results;
}

}  // namespace ops

}  // namespace dlprim
