// SPDX-License-Identifier: MIT
// Exchange: what ranks give each other that is not a sum: what each has updated, tensors of the
// first rank, and small values in the middle of a step. Processes of a host read it in memory of
// the one that has it, or that carries it for all of them (collective/exchange/piece_exchange.hpp).
#include "base/text.hpp"
#include "collective/devices/places.hpp"
#include "collective/exchange/exchange.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/event_impl.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dlprim {

void Exchange::make_piece_exchanges() {
    const std::size_t own = group_ ? group_->rank() : 0;
    const auto make = [&](const PieceRoutes& routes) {
        const bool is_shared = routes.mates().size() > 1;
        const auto memory = [this, is_shared](std::size_t process,
                                              std::uint64_t bytes) -> std::shared_ptr<std::byte> {
            if (is_shared) return shared_memory(process, bytes);
            const auto buffer = std::make_shared<StagingBuffer>(contexts_[0], bytes, ways_[0]);
            return {buffer, buffer->data()};
        };
        return std::make_unique<PieceExchange>(group_, routes, own, memory);
    };
    for (auto& each : firsts_) each = make(PieceRoutes::of_first(process_levels_, own));
    if (!group_) return;
    slices_ = make(PieceRoutes::of_all(process_levels_, own));
    for (auto& each : value_pieces_) each = make(PieceRoutes::of_all(process_levels_, own));
}

void Exchange::share_among_processes(std::size_t rank, const Tensor& tensor,
                                     const std::vector<Slice>& slices) {
    const std::string what = "what each process has updated";
    PieceExchange& pieces = *slices_;
    Queue& queue = Access::impl(contexts_[rank]).queue();
    TracePhases phases(trace_.get(), rank, TraceRow::host);
    phases.next(TraceKind::move, "give updated parameters");
    // A process's piece are the slices of its ranks.
    const auto begin_of = [&](const RankRange& ranks) { return slices[ranks.begin].begin; };
    by_first(rank, "memory for " + what, [&] {
        std::vector<std::uint64_t> bytes;
        for (const RankRange& ranks : processes_)
            bytes.push_back(bytes_of(tensor, slices[ranks.end - 1].end - begin_of(ranks)));
        pieces.make(bytes);
    });
    const auto place = [&](std::size_t q) {
        return place_of(elements_of(contexts_[rank], tensor, slices[q].begin, slices[q].size()));
    };
    const auto memory = [&](std::size_t process, std::size_t q) {
        return pieces.data(process) +
               bytes_of(tensor, slices[q].begin - begin_of(processes_[process]));
    };
    const std::size_t self = number(rank);
    // Waits for what the step before has enqueued to be written from this memory, too.
    queue.read(place(self), memory(group_->rank(), self), bytes_of(tensor, slices[self].size()),
               true);
    phases.next(TraceKind::wait, "wait for the parameters of others");
    barrier_->arrive(rank, "to share what it has updated");
    by_first(rank, what, [&] {
        if (pieces.is_carried())
            phases.next(TraceKind::move, "fetch parameters of other processes");
        pieces.carry(what);
        phases.next(TraceKind::wait, "wait for the parameters of others");
        pieces.meet(what);
    });
    phases.next(TraceKind::move, "receive parameters");
    for (std::size_t process = 0; process < processes_.size(); ++process)
        for (std::size_t q = processes_[process].begin; q < processes_[process].end; ++q)
            if (q != self)
                queue.write(place(q), memory(process, q), bytes_of(tensor, slices[q].size()),
                            false);
    taken_[rank] = Access::impl(contexts_[rank]).record({});
}

void Exchange::broadcast(std::size_t rank, const Tensor& tensor) {
    constexpr std::uint64_t most = 8 << 20;
    const std::string what = "values of the first device";
    Queue& queue = Access::impl(contexts_[rank]).queue();
    const bool is_first = number(rank) == 0;
    const BufferRef place = place_of(tensor);
    TracePhases phases(trace_.get(), rank, TraceRow::host);
    phases.next(TraceKind::move, "take parameters of the first device");
    // A part is read while the next one is written.
    for (std::uint64_t begin = 0; begin < tensor.bytes(); begin += most) {
        PieceExchange& piece = *firsts_[turns_[rank]++ % 2];
        const std::uint64_t bytes = std::min(most, tensor.bytes() - begin);
        const BufferRef part{place.buffer, place.byte_offset + begin};
        if (rank == 0) {
            piece.make({most});  // once and for all
            piece.make({bytes});
        }
        if (is_first) queue.read(part, piece.data(0), bytes, true);
        barrier_->arrive(rank, "to share " + what);
        if (rank == 0) {
            piece.carry(what, ProcessGroup::Wait::unlimited);
            piece.meet(what, ProcessGroup::Wait::unlimited);
        }
        barrier_->arrive(rank, "to take " + what);
        if (!is_first) queue.write(part, piece.data(0), bytes, true);
    }
}

std::unique_ptr<ShardMeeting> Exchange::meeting(std::size_t rank) {
    const auto gather = [self = shared_from_this(), rank, meetings = 0u](
                            const std::string& what, const std::vector<double>& values) mutable {
        const std::size_t turn = meetings++ % 2;
        Values& all = self->values_[turn];
        all[self->number(rank)] = values;
        const std::string text = cat("for ", what, " (", values.size(), " numbers)");
        self->barrier_->arrive(rank, text, Barrier::middle);
        if (!self->group_) return all;
        if (rank == 0) self->exchange_values(turn, what);
        self->barrier_->arrive(rank, text + " of other processes", Barrier::middle);
        return all;
    };
    return std::make_unique<ShardMeeting>(ShardMeeting{gather});
}

void Exchange::exchange_values(std::size_t turn, const std::string& what) {
    Values& all = values_[turn];
    PieceExchange& pieces = *value_pieces_[turn];
    const std::size_t each = all[own_.begin].size(), bytes = each * sizeof(double);
    std::vector<std::uint64_t> sizes;
    for (const RankRange& ranks : processes_) sizes.push_back(ranks.size() * bytes);
    pieces.make(sizes);
    const auto at = [&](std::size_t process, std::size_t rank) {
        return pieces.data(process) + (rank - processes_[process].begin) * bytes;
    };
    for (std::size_t rank = own_.begin; rank < own_.end; ++rank)
        std::memcpy(at(group_->rank(), rank), all[rank].data(), bytes);
    pieces.carry(what);
    pieces.meet(what);
    for (std::size_t process = 0; process < processes_.size(); ++process)
        for (std::size_t rank = processes_[process].begin; rank < processes_[process].end; ++rank) {
            all[rank].resize(each);
            std::memcpy(all[rank].data(), at(process, rank), bytes);
        }
}

}  // namespace dlprim
