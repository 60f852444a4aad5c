// SPDX-License-Identifier: MIT
// Exchange: sums that lie where kernels of all ranks reach them. A kernel of a second queue waits
// until one of the first leaves room, so that few large additions take less time than many. Groups
// that adjoin and that all ranks have made are therefore added up at once.
#include "base/text.hpp"
#include "collective/devices/ordered_sum.hpp"
#include "collective/devices/places.hpp"
#include "collective/devices/second_queue.hpp"
#include "collective/exchange/exchange.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/event_impl.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dlprim {

bool Exchange::waits_in_reach(const Shape& shape, DType dtype) const {
    // Such memory comes in large pages.
    constexpr std::uint64_t large = 4 << 20;
    const std::uint64_t bytes = static_cast<std::uint64_t>(shape.numel()) * size_of(dtype);
    return peers_.source && bytes >= large && bytes <= peers_.largest();
}

Tensor Exchange::make_waiting(std::size_t rank, const Shape& shape, DType dtype) {
    if (!waits_in_reach(shape, dtype)) return Tensor(contexts_[rank], shape, dtype);
    const std::uint64_t bytes = static_cast<std::uint64_t>(shape.numel()) * size_of(dtype);
    const std::shared_ptr<PeerMemory> memory = peers_.source->make(rank, bytes);
    const Tensor second = Access::tensor(second_[rank], memory->in(rank), 0, shape, dtype);
    const Tensor whole = elements_of(contexts_[rank], second, 0, shape.numel());
    waiting_[rank].emplace(memory_of(whole), memory);
    return Access::tensor(contexts_[rank], Access::buffer(whole), whole.byte_offset(), shape,
                          dtype);
}

std::optional<StagingBuffer> Exchange::buffer_of(std::size_t rank, const Tensor& tensor) const {
    const auto found = waiting_[rank].find(memory_of(tensor));
    if (found == waiting_[rank].end()) return std::nullopt;
    return StagingBuffer(found->second, place_of(tensor).handle_offset());
}

bool Exchange::is_reached(std::size_t rank, const std::vector<Term>& terms) const {
    return terms.size() == 1 && buffer_of(rank, terms[0].waiting.at(0)).has_value();
}

std::size_t Exchange::find_ready(std::size_t rank, std::size_t group) {
    // Each group lies before the one that has been made earlier.
    const auto adjoin = [](const Tensor& later, const Tensor& earlier) {
        return memory_of(later) == memory_of(earlier) &&
               later.byte_offset() + later.bytes() == earlier.byte_offset();
    };
    Started& started = *started_[rank];
    const std::lock_guard lock(started.mutex);
    auto at = started.groups.find(group);
    std::size_t end = group + 1;
    for (auto next = std::next(at); next != started.groups.end(); at = next++, ++end) {
        const std::vector<Term>&before = at->second.terms, &terms = next->second.terms;
        bool joins =
            next->first == end && is_reached(rank, terms) && adjoin(terms[0].mean, before[0].mean);
        for (std::size_t i = 0; joins && i < terms[0].waiting.size(); ++i)
            joins = adjoin(terms[0].waiting[i], before[0].waiting[i]);
        if (!joins || !next->second.ready->done()) break;
    }
    return end;
}

void Exchange::add_neighbours(std::size_t rank, std::size_t group) {
    Started& started = *started_[rank];
    const std::size_t turn = started.barriers++ % 2;
    const std::size_t own = started.offered[turn] = find_ready(rank, group);
    for (std::size_t g = group; g < own; ++g) make_buffers(rank, g, take(rank, g).terms);
    const std::int64_t first = take(rank, group).terms[0].mean.shape().numel();
    TracePhases phases(trace_.get(), rank, TraceRow::exchange, static_cast<std::int64_t>(group));
    phases.next(TraceKind::wait, "wait for the sums of others");
    barrier_->arrive(
        rank, cat("to add sums over shards (part ", group, " of the step, ", first, " elements)"));
    // What all have made.
    std::size_t end = own;
    for (const auto& other : started_) end = std::min(end, other->offered[turn]);
    announce_end(rank, end);
    // The last of them begins where all begin.
    Term whole = take(rank, end - 1).terms[0];
    std::int64_t elements = 0;
    for (std::size_t g = group; g < end; ++g) {
        const Group one = take(rank, g);
        one.ready->wait();  // which tells what kernels have refused
        elements += one.terms[0].mean.shape().numel();
    }
    const auto lengthen = [&](Tensor& tensor) {
        tensor = Access::tensor(contexts_[rank], Access::buffer(tensor), tensor.byte_offset(),
                                Shape{elements}, tensor.dtype());
    };
    for (Tensor& sum : whole.waiting) lengthen(sum);
    lengthen(whole.mean);
    started.next = end;
    if (is_added_by_all(rank, {whole})) {
        phases.next(TraceKind::move, "add all");
        return add_reached(rank, end - 1, whole, {0, elements});
    }
    phases.next(TraceKind::move, "add slice");
    add_reached(rank, end - 1, whole, slice(elements, rank));
    queue(rank).finish();
    phases.next(TraceKind::wait, "wait for the means of others");
    barrier_->arrive(rank, cat("to receive sums over shards (parts ", group, " to ", end - 1,
                               " of the step, ", elements, " elements)"));
    phases.next(TraceKind::move, "receive means");
    for (std::size_t q = 0; q < size(); ++q) {
        const Slice part = slice(elements, q);
        if (q == rank || part.size() == 0) continue;
        const Tensor target = elements_of(second_[rank], whole.mean, part.begin, part.size());
        buffers_[rank][end - 1][0].sums[0].get(second_[rank], rank, bytes_of(target, part.begin),
                                               target);
    }
}

void Exchange::add_reached(std::size_t rank, std::size_t group, const Term& whole,
                           const Slice& own) {
    if (own.size() == 0) return;
    const auto view = [&](std::size_t q, std::size_t i) {
        return buffers_[q][group][0].sums[i].view(
            second_[rank], rank, bytes_of(whole.mean, own.begin), own.size(), whole.mean.dtype());
    };
    // The mean goes to the rank's own gradients. Others that do not add it as well get it in the
    // place of their sum, whose slice nobody else reads.
    std::vector<Tensor> means{elements_of(second_[rank], whole.mean, own.begin, own.size())};
    const bool by_all = is_added_by_all(rank, {whole});
    for (std::size_t q = 0; q < size(); ++q)
        if (q != rank && !by_all) means.push_back(view(q, 0));
    std::size_t staged = 0;
    OrderedSum adder(shards_, add_, [&](const Tensor& left, bool is_mean) {
        return is_mean ? means
                       : std::vector<Tensor>{staging(rank, staged++, own.size(), left.dtype())};
    });
    for (std::size_t q = 0; q < size(); ++q)
        for (std::size_t i = 0; i < pending_[q].size(); ++i) adder.take(pending_[q][i], view(q, i));
}

Tensor Exchange::staging(std::size_t rank, std::size_t index, std::int64_t elements, DType dtype) {
    std::vector<Tensor>& all = staging_[rank];
    if (all.size() <= index) all.resize(index + 1);
    if (!all[index].defined() || all[index].shape().numel() < elements ||
        all[index].dtype() != dtype)
        all[index] = Tensor(second_[rank], Shape{elements}, dtype);
    return elements_of(second_[rank], all[index], 0, elements);
}

}  // namespace dlprim
