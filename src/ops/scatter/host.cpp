// SPDX-License-Identifier: MIT
// scatter.host: Scatter on the host's threads. Each range of slots belongs to one piece of work,
// which brings its updates into the order of slots and applies them one after the other, so that
// results do not depend on threads. Floats are summed in double. An index out of range throws.
#include "base/text.hpp"
#include "engine/indexing/host_slots.hpp"
#include "ops/scatter/host_element.hpp"
#include "ops/scatter/operator.hpp"
#include "ops/scatter/options.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace dlprim::scatter {

namespace {

/// Applies the updates of one slot, in their order: `lines` of `slice` elements each.
using Apply = void (*)(Reduction, bool includes_self, std::int64_t slice,
                       std::span<const std::int64_t> order, const std::byte* updates,
                       std::byte* slot);

template <typename E>
void apply(Reduction reduction, bool includes_self, std::int64_t slice,
           std::span<const std::int64_t> order, const std::byte* updates, std::byte* slot) {
    using Value = typename E::Value;
    if constexpr (std::is_same_v<E, TruthElement>) reduction = reduction_of_truths(reduction);
    constexpr std::int64_t block = 256;
    SumOf<Value> sums[block];
    for (std::int64_t begin = 0; begin < slice; begin += block) {
        const std::int64_t end = std::min(begin + block, slice);
        for (std::int64_t i = begin; i < end; ++i) sums[i - begin] = E::load(slot, i);
        for (const std::int64_t n : order) {
            const bool replaces = !includes_self && n == order.front();
            for (std::int64_t i = begin; i < end; ++i) {
                auto& sum = sums[i - begin];
                const SumOf<Value> update = E::load(updates, n * slice + i);
                sum = replaces ? update : combined(reduction, sum, update);
            }
        }
        const std::int64_t count = std::ssize(order) + (includes_self ? 1 : 0);
        for (std::int64_t i = begin; reduction == Reduction::mean && i < end; ++i)
            sums[i - begin] = divided(sums[i - begin], count);
        for (std::int64_t i = begin; i < end; ++i)
            E::store(slot, i, static_cast<Value>(sums[i - begin]));
    }
}

Apply apply_of(DType dtype) {
    return visit_element(dtype, [](auto element) -> Apply { return apply<decltype(element)>; });
}

/// The parts of slots [begin, end), by rising slot and those of one slot in their order.
std::vector<std::int64_t> parts_in_order(const std::vector<std::int64_t>& slots, std::int64_t begin,
                                         std::int64_t end) {
    std::vector<std::int64_t> own;
    for (std::size_t n = 0; n < slots.size(); ++n)
        if (slots[n] >= begin && slots[n] < end) own.push_back(static_cast<std::int64_t>(n));
    const auto slot_of = [&](std::int64_t n) { return slots[static_cast<std::size_t>(n)]; };
    if (std::ssize(own) < (end - begin) / 8) {
        std::stable_sort(own.begin(), own.end(),
                         [&](std::int64_t a, std::int64_t b) { return slot_of(a) < slot_of(b); });
        return own;
    }
    std::vector<std::int64_t> next(static_cast<std::size_t>(end - begin) + 1, 0);
    for (const std::int64_t n : own) ++next[static_cast<std::size_t>(slot_of(n) - begin) + 1];
    for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
    std::vector<std::int64_t> order(own.size());
    for (const std::int64_t n : own)
        order[static_cast<std::size_t>(next[static_cast<std::size_t>(slot_of(n) - begin)]++)] = n;
    return order;
}

/// A problem that is ready to run.
struct Job {
    Operands operands;
    DType index_type, dtype;

    std::size_t slice_bytes() const {
        return static_cast<std::size_t>(operands.indexing.slice) * size_of(dtype);
    }

    void run(HostPool& pool, std::span<const BufferRef> given) const {
        const auto at = [&](int i) { return given[static_cast<std::size_t>(i)].host(); };
        const Indexing& indexing = operands.indexing;
        const HostSlots slot_of(indexing, at(operands.indices), index_type);
        std::vector<std::int64_t> slots(
            static_cast<std::size_t>(indexing.slice == 0 ? 0 : indexing.parts));
        pool.parallel_for(std::ssize(slots), 4096, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t n = begin; n < end; ++n)
                slots[static_cast<std::size_t>(n)] = slot_of(n);
        });
        const std::int64_t grain = 1 + indexing.slots / pool.threads();
        pool.parallel_for(indexing.slots, grain, [&](std::int64_t begin, std::int64_t end) {
            range(slots, begin, end, operands.has_data ? at(0) : nullptr, at(operands.updates),
                  at(operands.result));
        });
    }

    /// Makes slots [begin, end) of the result.
    void range(const std::vector<std::int64_t>& slots, std::int64_t begin, std::int64_t end,
               const std::byte* data, const std::byte* updates, std::byte* result) const {
        const std::size_t bytes = slice_bytes();
        const std::size_t first = static_cast<std::size_t>(begin) * bytes;
        const std::size_t size = static_cast<std::size_t>(end - begin) * bytes;
        if (size == 0) return;
        if (data == nullptr)
            std::memset(result + first, 0, size);
        else if (data != result)
            std::memcpy(result + first, data + first, size);
        const bool replaces = operands.reduction == Reduction::none;
        const Apply apply = replaces ? nullptr : apply_of(dtype);
        const std::vector<std::int64_t> order = parts_in_order(slots, begin, end);
        for (std::size_t i = 0; i < order.size();) {
            const std::int64_t slot = slots[static_cast<std::size_t>(order[i])];
            std::size_t j = i + 1;
            while (j < order.size() && slots[static_cast<std::size_t>(order[j])] == slot) ++j;
            std::byte* to = result + static_cast<std::size_t>(slot) * bytes;
            if (replaces)
                std::memcpy(to, updates + static_cast<std::size_t>(order[j - 1]) * bytes, bytes);
            else
                apply(operands.reduction, operands.includes_self, operands.indexing.slice,
                      {&order[i], j - i}, updates, to);
            i = j;
        }
    }
};

class Host : public Engine {
  public:
    Host() : Engine("scatter.host", type, true) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return check(problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return seconds(device, problem, 2);
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const Operands operands(problem);
        const Job job{operands, problem.inputs[static_cast<std::size_t>(operands.indices)].dtype,
                      problem.outputs[0].dtype};
        return std::make_unique<HostLaunch>(
            [job](HostPool& pool, std::span<const BufferRef> given) { job.run(pool, given); });
    }
};

}  // namespace

Verdict check(const Problem& problem) {
    // An epilogue's operands would be taken for data.
    if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
    const Operands operands(problem);
    const DType dtype = problem.outputs[0].dtype;
    for (const int i : {0, operands.updates}) {
        const DType other = problem.inputs[static_cast<std::size_t>(i)].dtype;
        if (i != operands.indices && other != dtype)
            return Verdict::no(
                cat("it needs tensors of one type, not ", name_of(other), " and ", name_of(dtype)));
    }
    if (operands.indexing.parts >= std::int64_t{1} << 31)
        return Verdict::no(
            cat("it supports fewer than 2^31 indices, not ", operands.indexing.parts));
    return Verdict::yes();
}

double seconds(const Traits& device, const Problem& problem, double times) {
    double bytes = 0;
    for (const auto* operands : {&problem.inputs, &problem.outputs})
        for (const Operand& operand : *operands)
            bytes += static_cast<double>(operand.shape.numel()) *
                     static_cast<double>(size_of(operand.dtype));
    return times * bytes / (std::max(device.gbytes_per_s, 1.0) * 0.3e9) + device.launch_us * 3e-6;
}

void add_host_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>());
}

}  // namespace dlprim::scatter
