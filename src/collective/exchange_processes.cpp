// SPDX-License-Identifier: MIT
// Exchange: what ranks of several processes do beyond what those of one do.
#include "collective/exchange.hpp"
#include "collective/places.hpp"
#include "collective/second_queue.hpp"
#include "runtime/context_impl.hpp"

#include <utility>

namespace dlprim {

void Exchange::make_copies(std::size_t other, std::size_t group, const Terms& terms) {
    for (const Term& term : terms) {
        const std::int64_t elements = term.mean.shape().numel();
        const Slice own = slice(elements, number(0));
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
    const std::size_t self = number(rank);
    std::vector<Pieces> to(size()), from(size());
    for (std::size_t t = 0; t < terms.size(); ++t) {
        const Tensor& tensor = terms[t].mean;
        const std::int64_t elements = tensor.shape().numel();
        const std::uint64_t own = bytes_of(tensor, slice(elements, self).size());
        for (std::size_t q = 0; q < size(); ++q) {
            if (q == self) continue;
            const Slice theirs = slice(elements, q);
            for (const Shelf& sum : rooms_[self][group][t].sums)
                to[q].push_back(
                    {sum.data() + bytes_of(tensor, theirs.begin), bytes_of(tensor, theirs.size())});
            for (const Shelf& sum : rooms_[q][group][t].sums) from[q].push_back({sum.data(), own});
        }
    }
    group_->alltoall(to, from, what);
}

void Exchange::fetch_means(std::size_t rank, std::size_t group, const Terms& terms,
                           const std::string& what) {
    if (!group_) return;
    const std::size_t self = number(rank);
    std::vector<Pieces> to(size()), from(size());
    for (std::size_t t = 0; t < terms.size(); ++t) {
        const Tensor& tensor = terms[t].mean;
        const auto bytes = [&](std::size_t q) {
            return bytes_of(tensor, slice(tensor.shape().numel(), q).size());
        };
        for (std::size_t q = 0; q < size(); ++q) {
            if (q == self) continue;
            to[q].push_back({rooms_[self][group][t].mean.data(), bytes(self)});
            from[q].push_back({rooms_[q][group][t].mean.data(), bytes(q)});
        }
    }
    group_->alltoall(to, from, what);
}

void Exchange::share_by_transport(const Tensor& tensor, const std::vector<Slice>& slices) {
    Queue& queue = Access::impl(contexts_[0]).queue();
    if (shared_size_[0] < tensor.shape().numel()) {
        shared_[0] = HostMemory(contexts_[0], tensor.bytes(), ways_[0]);
        shared_size_[0] = tensor.shape().numel();
    }
    const auto piece = [&](std::size_t q) {
        return MessagePiece{shared_[0].data() + bytes_of(tensor, slices[q].begin),
                            bytes_of(tensor, slices[q].size())};
    };
    const auto place = [&](std::size_t q) {
        return place_of(elements_of(contexts_[0], tensor, slices[q].begin, slices[q].size()));
    };
    const std::size_t self = number(0);
    std::vector<Pieces> to(size()), from(size());
    for (std::size_t q = 0; q < size(); ++q) {
        if (q == self) continue;
        to[q] = {piece(self)};
        from[q] = {piece(q)};
    }
    // Waits for what the step before has enqueued to be written from this memory, too.
    queue.read(place(self), piece(self).data, piece(self).bytes, true);
    group_->alltoall(to, from, "what each process has updated");
    for (std::size_t q = 0; q < size(); ++q)
        if (q != self) queue.write(place(q), piece(q).data, piece(q).bytes, false);
}

}  // namespace dlprim
