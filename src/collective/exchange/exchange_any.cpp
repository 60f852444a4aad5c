// SPDX-License-Identifier: MIT
// Exchange: sums that the transport of several processes adds up itself, in an order of its own.
// Each rank adds its sums on its device; the first rank of the process adds those of its ranks on
// the host, and gives them to the transport.
#include "collective/exchange/exchange.hpp"

#include "base/text.hpp"
#include "collective/devices/places.hpp"
#include "collective/devices/second_queue.hpp"
#include "runtime/context_impl.hpp"

namespace dlprim {

void Exchange::allow_any_order() {
    any_order_ = group_ != nullptr && group_->can_add();
}

void Exchange::add_in_any_order(std::size_t rank, std::size_t group, const Terms& terms,
                                const std::string& what) {
    const auto sums_of = [&](std::size_t q, std::size_t t) {
        return reinterpret_cast<float*>(rooms_[q][group][t].sums[0].data());
    };
    const std::size_t self = number(rank);
    Rooms& rooms = rooms_[self].at(group);
    TracePhases phases(trace_.get(), rank, TraceRow::exchange, static_cast<std::int64_t>(group));
    phases.next(TraceKind::move, "send sums");
    for (std::size_t t = 0; t < terms.size(); ++t) {
        const Tensor& sum = terms[t].waiting.at(0);
        if (rooms.size() == t) {
            rooms.emplace_back();
            rooms[t].sums.emplace_back(HostMemory(second_[rank], sum.bytes(), ways_[rank]));
        }
        const auto part = [&](std::size_t i) {
            return elements_of(second_[rank], terms[t].waiting[i], 0, sum.shape().numel());
        };
        for (std::size_t i = 1; i < terms[t].waiting.size(); ++i)
            add_(part(0), part(i), {part(0)}, 1);
        rooms[t].sums[0].put(second_[rank], rank, sum);
    }
    queue(rank).finish();
    phases.next(TraceKind::wait, "wait for the sums of others");
    barrier_->arrive(rank, "to add sums " + what);
    phases.next(TraceKind::move, "add up");
    for (std::size_t t = 0; rank == 0 && t < terms.size(); ++t) {
        float* const sums = sums_of(self, t);
        const auto count = static_cast<std::uint64_t>(terms[t].mean.shape().numel());
        for (std::size_t q = own_.begin + 1; q < own_.end; ++q)
            for (std::uint64_t i = 0; i < count; ++i) sums[i] += sums_of(q, t)[i];
        group_->allreduce(sums, count, "sums " + what);
        const float factor = 1.0f / static_cast<float>(shards_);
        for (std::uint64_t i = 0; i < count; ++i) sums[i] *= factor;
    }
    await_transport(rank, what);
    phases.next(TraceKind::move, "receive means");
    for (std::size_t t = 0; t < terms.size(); ++t)
        rooms_[own_.begin][group][t].sums[0].get(
            second_[rank], rank, 0,
            elements_of(second_[rank], terms[t].mean, 0, terms[t].mean.shape().numel()));
}

}  // namespace dlprim
