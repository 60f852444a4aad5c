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

std::size_t Exchange::process_of(std::size_t number) const {
    std::size_t process = 0;
    while (!processes_[process].has(number)) ++process;
    return process;
}

void Exchange::await_transport(std::size_t rank, const std::string& what) {
    if (group_ && contexts_.size() > 1)
        barrier_->arrive(rank, "for the first device of this process to bring " + what);
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
