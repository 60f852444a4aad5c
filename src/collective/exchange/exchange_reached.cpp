// SPDX-License-Identifier: MIT
// Exchange: sums that lie where kernels of all ranks reach them. A kernel of a second queue waits
// until one of the first leaves room, so that few large additions take less time than many. Groups
// that adjoin and that all ranks have made are therefore added up at once.
#include "base/text.hpp"
#include "collective/devices/places.hpp"
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
    staging_[rank].restart();
    if (is_added_by_all(rank, {whole})) {
        phases.next(TraceKind::move, "add all");
        const Slice all{0, elements};
        add_sums(rank, end - 1, 0, whole, all, {part_of(rank, whole.mean, all)});
        return;
    }
    phases.next(TraceKind::move, "add slice");
    const LevelPlan::Division division = divide(whole.mean);
    add_reached(rank, end - 1, whole, slice_of(division, rank));
    queue(rank).finish();
    phases.next(TraceKind::wait, "wait for the means of others");
    barrier_->arrive(rank, cat("to receive sums over shards (parts ", group, " to ", end - 1,
                               " of the step, ", elements, " elements)"));
    phases.next(TraceKind::move, "receive means");
    for (std::size_t q = 0; q < size(); ++q) {
        const Slice part = slice_of(division, q);
        if (q == rank || part.size() == 0) continue;
        const Tensor target = part_of(rank, whole.mean, part);
        buffers_[rank][end - 1][0].sums[0].get(second_[rank], rank, bytes_of(target, part.begin),
                                               target);
    }
}

void Exchange::add_reached(std::size_t rank, std::size_t group, const Term& whole,
                           const Slice& own) {
    if (own.size() == 0) return;
    // The mean goes to the rank's own gradients. Others get it in the place of their sum, whose
    // slice nobody else reads.
    std::vector<Tensor> means{part_of(rank, whole.mean, own)};
    for (std::size_t q = 0; q < size(); ++q)
        if (q != rank)
            means.push_back(buffers_[q][group][0].sums[0].view(second_[rank], rank,
                                                               bytes_of(whole.mean, own.begin),
                                                               own.size(), whole.mean.dtype()));
    add_sums(rank, group, 0, whole, own, means);
}

}  // namespace dlprim
