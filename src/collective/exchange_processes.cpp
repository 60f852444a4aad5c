// SPDX-License-Identifier: MIT
// Exchange: what ranks of several processes do beyond what those of one do. The first rank of each
// process exchanges for all of them, so that the transport has one caller. What it brings lies in
// host memory, where all ranks of the process read it.
#include "collective/exchange.hpp"

#include "base/text.hpp"
#include "collective/places.hpp"
#include "collective/second_queue.hpp"
#include "runtime/context_impl.hpp"

#include <utility>

namespace dlprim {

void Exchange::learn_numbers() {
    own_.end = contexts_.size();
    if (!group_) return;
    const std::uint64_t own = contexts_.size();
    std::vector<std::uint64_t> counts(group_->size());
    group_->allgather(&own, sizeof(own), counts.data(), "how many devices each process has");
    std::size_t next = 0;
    for (const std::uint64_t count : counts) {
        processes_.push_back({next, next + count});
        next += count;
    }
    own_ = processes_[group_->rank()];
}

Exchange::Slice Exchange::slice_of(std::int64_t elements, const Numbers& ranks) const {
    return {slice(elements, ranks.begin).begin, slice(elements, ranks.end - 1).end};
}

void Exchange::await_transport(std::size_t rank, const std::string& what) {
    if (group_ && contexts_.size() > 1)
        barrier_->arrive(rank, "for the first device of this process to bring " + what);
}

void Exchange::make_copies(std::size_t other, std::size_t group, const Terms& terms) {
    for (const Term& term : terms) {
        const std::int64_t elements = term.mean.shape().numel();
        const Slice own = slice_of(elements, own_);
        Room room;
        room.first = own.begin;
        for (std::size_t i = 0; i < pending_[other].size(); ++i)
            room.sums.emplace_back(
                HostMemory(second_[0], bytes_of(term.mean, own.size()), ways_[0]));
        room.mean = Shelf(
            HostMemory(second_[0], bytes_of(term.mean, slice(elements, other).size()), ways_[0]));
        rooms_[other].at(group).push_back(std::move(room));
    }
}

void Exchange::fetch_sums(std::size_t rank, std::size_t group, const Terms& terms,
                          const std::string& what) {
    if (!group_) return;
    if (rank > 0) return await_transport(rank, what);
    std::vector<Pieces> to(processes_.size()), from(processes_.size());
    for (std::size_t t = 0; t < terms.size(); ++t) {
        const Tensor& tensor = terms[t].mean;
        const std::int64_t elements = tensor.shape().numel();
        const std::uint64_t own = bytes_of(tensor, slice_of(elements, own_).size());
        for (std::size_t p = 0; p < processes_.size(); ++p) {
            if (p == group_->rank()) continue;
            const Slice theirs = slice_of(elements, processes_[p]);
            for (std::size_t q = own_.begin; q < own_.end; ++q)
                for (const Shelf& sum : rooms_[q][group][t].sums)
                    to[p].push_back({sum.data() + bytes_of(tensor, theirs.begin),
                                     bytes_of(tensor, theirs.size())});
            for (std::size_t q = processes_[p].begin; q < processes_[p].end; ++q)
                for (const Shelf& sum : rooms_[q][group][t].sums)
                    from[p].push_back({sum.data(), own});
        }
    }
    group_->alltoall(to, from, what);
    await_transport(rank, what);
}

void Exchange::fetch_means(std::size_t rank, std::size_t group, const Terms& terms,
                           const std::string& what) {
    if (!group_) return;
    if (rank > 0) return await_transport(rank, what);
    std::vector<Pieces> to(processes_.size()), from(processes_.size());
    for (std::size_t t = 0; t < terms.size(); ++t) {
        const Tensor& tensor = terms[t].mean;
        const auto piece = [&](std::size_t q) {
            return MessagePiece{rooms_[q][group][t].mean.data(),
                                bytes_of(tensor, slice(tensor.shape().numel(), q).size())};
        };
        for (std::size_t p = 0; p < processes_.size(); ++p) {
            if (p == group_->rank()) continue;
            for (std::size_t q = own_.begin; q < own_.end; ++q) to[p].push_back(piece(q));
            for (std::size_t q = processes_[p].begin; q < processes_[p].end; ++q)
                from[p].push_back(piece(q));
        }
    }
    group_->alltoall(to, from, what);
    await_transport(rank, what);
}

void Exchange::share_by_transport(std::size_t rank, const Tensor& tensor,
                                  const std::vector<Slice>& slices) {
    const char* const what = "what each process has updated";
    Queue& queue = Access::impl(contexts_[rank]).queue();
    if (rank == 0 && shared_size_[0] < tensor.shape().numel()) {
        shared_[0] = HostMemory(contexts_[0], tensor.bytes(), ways_[0]);
        shared_size_[0] = tensor.shape().numel();
    }
    await_transport(rank, cat("memory for ", what));
    const auto piece = [&](const Numbers& ranks) {
        const std::int64_t begin = slices[ranks.begin].begin, end = slices[ranks.end - 1].end;
        return MessagePiece{shared_[0].data() + bytes_of(tensor, begin),
                            bytes_of(tensor, end - begin)};
    };
    const auto place = [&](std::size_t q) {
        return place_of(elements_of(contexts_[rank], tensor, slices[q].begin, slices[q].size()));
    };
    const std::size_t self = number(rank);
    // Waits for what the step before has enqueued to be written from this memory, too.
    const MessagePiece own = piece({self, self + 1});
    queue.read(place(self), own.data, own.bytes, true);
    barrier_->arrive(rank, "to share what it has updated");
    if (rank == 0) {
        std::vector<Pieces> to(processes_.size()), from(processes_.size());
        for (std::size_t p = 0; p < processes_.size(); ++p) {
            if (p == group_->rank()) continue;
            to[p] = {piece(own_)};
            from[p] = {piece(processes_[p])};
        }
        group_->alltoall(to, from, what);
    }
    await_transport(rank, what);
    for (std::size_t q = 0; q < size(); ++q) {
        const MessagePiece theirs = piece({q, q + 1});
        if (q != self) queue.write(place(q), theirs.data, theirs.bytes, false);
    }
}

}  // namespace dlprim
