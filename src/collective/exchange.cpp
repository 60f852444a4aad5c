// SPDX-License-Identifier: MIT
// Exchange. Host memory of a rank is written by that rank alone. It writes to it again only after a
// barrier that the others pass when they have read it; what share() has enqueued is read before the
// sums of the next step are there.
#include "collective/exchange.hpp"

#include "base/text.hpp"
#include "collective/second_queue.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/event_impl.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

namespace {

/// Slices begin at multiples of so many elements.
constexpr std::int64_t grain = 1024;

BufferRef place_of(const Tensor& tensor) {
    return {Access::buffer(tensor).get(), tensor.byte_offset()};
}

std::uint64_t bytes_of(const Tensor& tensor, std::int64_t elements) {
    return static_cast<std::uint64_t>(elements) * size_of(tensor.dtype());
}

}  // namespace

Exchange::Exchange(std::vector<Context> contexts, int shards, std::vector<ShardRange> parts,
                   std::shared_ptr<Barrier> barrier, AddPair add,
                   std::shared_ptr<ProcessGroup> group)
    : contexts_(std::move(contexts)),
      shards_(shards),
      parts_(std::move(parts)),
      barrier_(std::move(barrier)),
      add_(std::move(add)),
      group_(std::move(group)),
      rooms_(parts_.size()),
      shared_(contexts_.size()),
      shared_size_(contexts_.size(), 0) {
    int next = 0;
    for (const ShardRange& part : parts_) {
        require(part.first == next && part.count > 0,
                "devices must have shards that follow each "
                "other, at least one each");
        next = part.end();
        ShardTree tree(shards_);
        for (int shard = part.first; shard < part.end(); ++shard) tree.take({shard, 1});
        pending_.push_back(tree.pending());
    }
    const std::size_t ranks = group_ ? group_->size() : contexts_.size();
    require(next == shards_ && parts_.size() == ranks, "the devices have ", next, " shards of ",
            shards_);
    require(!group_ || contexts_.size() == 1, "a process of several has one device");
    for (const Context& context : contexts_) second_.push_back(beside(context));
    for (const Context& context : second_) ways_.push_back(choose_way(context, second_));
    // A barrier may take as long as the deadline, and a job passes two.
    for (std::size_t rank = 0; rank < contexts_.size(); ++rank)
        movers_.push_back(std::make_unique<Mover>(3 * barrier_->deadline()));
}

Queue& Exchange::queue(std::size_t rank) {
    return Access::impl(second_[rank]).queue();
}

void Exchange::expect(std::size_t rank, std::size_t groups) {
    if (!group_) return rooms_.at(rank).resize(groups);
    for (std::vector<Rooms>& rooms : rooms_) rooms.resize(groups);
}

Exchange::Slice Exchange::slice(std::int64_t elements, std::size_t number) const {
    const auto ranks = static_cast<std::int64_t>(size()), index = static_cast<std::int64_t>(number);
    const std::int64_t grains = (elements + grain - 1) / grain;
    return {std::min(elements, grains * index / ranks * grain),
            std::min(elements, grains * (index + 1) / ranks * grain)};
}

void Exchange::make_rooms(std::size_t rank, std::size_t group, const std::vector<Term>& terms) {
    const std::size_t self = number(rank);
    Rooms& rooms = rooms_[self].at(group);
    if (!rooms.empty()) return;
    std::size_t others = 0;
    for (std::size_t q = 0; q < size(); ++q) others += q == self ? 0 : pending_[q].size();
    for (const Term& term : terms) {
        const Tensor& tensor = term.mean;
        const std::int64_t own = slice(tensor.shape().numel(), self).size();
        Room room;
        for (std::size_t i = 0; i < pending_[self].size(); ++i)
            room.sums.emplace_back(second_[rank], tensor.bytes(), ways_[rank]);
        room.mean = HostMemory(second_[rank], bytes_of(tensor, own), ways_[rank]);
        for (std::size_t i = 0; i < others && own > 0; ++i)
            room.staging.emplace_back(second_[rank], Shape{own}, tensor.dtype());
        rooms.push_back(std::move(room));
    }
    for (std::size_t q = 0; group_ && q < size(); ++q)
        if (q != self) make_copies(q, group, terms);
}

void Exchange::make_copies(std::size_t other, std::size_t group, const Terms& terms) {
    for (const Term& term : terms) {
        const std::int64_t elements = term.mean.shape().numel();
        const Slice own = slice(elements, number(0));
        Room room;
        room.first = own.begin;
        for (std::size_t i = 0; i < pending_[other].size(); ++i)
            room.sums.emplace_back(second_[0], bytes_of(term.mean, own.size()), ways_[0]);
        room.mean =
            HostMemory(second_[0], bytes_of(term.mean, slice(elements, other).size()), ways_[0]);
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
            for (const HostMemory& sum : rooms_[self][group][t].sums)
                to[q].push_back(
                    {sum.data() + bytes_of(tensor, theirs.begin), bytes_of(tensor, theirs.size())});
            for (const HostMemory& sum : rooms_[q][group][t].sums)
                from[q].push_back({sum.data(), own});
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

void Exchange::send_sums(std::size_t rank, Rooms& rooms, const std::vector<Term>& terms) {
    for (std::size_t t = 0; t < terms.size(); ++t)
        for (std::size_t i = 0; i < rooms[t].sums.size(); ++i) {
            const Tensor& sum = terms[t].waiting.at(i);
            queue(rank).read(place_of(sum), rooms[t].sums[i].data(), sum.bytes(), false);
        }
    queue(rank).finish();
}

void Exchange::add_slice(std::size_t rank, std::size_t group, std::size_t tensor,
                         const Term& term) {
    const std::size_t self = number(rank);
    const Slice own = slice(term.mean.shape().numel(), self);
    if (own.size() == 0) return;
    Room& room = rooms_[self][group][tensor];
    ShardTree tree(shards_);
    std::vector<Tensor> sums;
    std::size_t staged = 0;
    for (std::size_t q = 0; q < size(); ++q) {
        for (std::size_t i = 0; i < pending_[q].size(); ++i) {
            if (q == self) {
                sums.push_back(elements_of(second_[rank], term.waiting[i], own.begin, own.size()));
            } else {
                const Room& theirs = rooms_[q][group][tensor];
                sums.push_back(room.staging[staged++]);
                queue(rank).write(
                    place_of(sums.back()),
                    theirs.sums[i].data() + bytes_of(term.mean, own.begin - theirs.first),
                    sums.back().bytes(), false);
            }
            for (std::size_t joined = tree.take(pending_[q][i]); joined > 0; --joined) {
                const Tensor right = std::move(sums.back());
                sums.pop_back();
                const bool is_last = joined == 1 && tree.pending().front().count == shards_;
                add_(sums.back(), right, sums.back(), is_last ? 1.0 / shards_ : 1.0);
            }
        }
    }
    queue(rank).read(place_of(sums.front()), room.mean.data(), sums.front().bytes(), false);
}

void Exchange::receive_means(std::size_t rank, std::size_t group, std::size_t tensor,
                             const Tensor& mean) {
    for (std::size_t q = 0; q < size(); ++q) {
        const Slice part = slice(mean.shape().numel(), q);
        if (part.size() == 0) continue;
        const Tensor target = elements_of(second_[rank], mean, part.begin, part.size());
        queue(rank).write(place_of(target), rooms_[q][group][tensor].mean.data(), target.bytes(),
                          false);
    }
}

void Exchange::add_up(std::size_t rank, std::size_t group, const std::vector<Term>& terms) {
    std::int64_t elements = 0;
    for (const Term& term : terms) elements += term.mean.shape().numel();
    const std::string what =
        cat("over shards (part ", group, " of the step, ", elements, " elements)");
    make_rooms(rank, group, terms);
    send_sums(rank, rooms_[number(rank)][group], terms);
    barrier_->arrive(rank, "to add sums " + what);
    fetch_sums(rank, group, terms, "sums " + what);
    for (std::size_t t = 0; t < terms.size(); ++t) add_slice(rank, group, t, terms[t]);
    queue(rank).finish();
    barrier_->arrive(rank, "to receive sums " + what);
    fetch_means(rank, group, terms, "means " + what);
    for (std::size_t t = 0; t < terms.size(); ++t) receive_means(rank, group, t, terms[t].mean);
}

void Exchange::start(std::size_t rank, std::size_t group, std::vector<Term> terms,
                     std::shared_ptr<EventImpl> ready) {
    movers_[rank]->post([self = shared_from_this(), rank, group, terms = std::move(terms),
                         ready = std::move(ready)] {
        try {
            ready->wait();
            self->add_up(rank, group, terms);
        } catch (const Error& error) {
            self->barrier_->fail(rank, error);  // at once, since the rank's own thread may be busy
            throw;
        }
    });
}

void Exchange::finish(std::size_t rank) {
    movers_[rank]->wait();
    queue(rank).finish();  // whose last work are the means that were received
}

void Exchange::share(std::size_t rank, const Tensor& tensor, const std::vector<Slice>& slices) {
    Queue& first = Access::impl(contexts_[rank]).queue();
    const auto part = [&](std::size_t q) {
        return elements_of(contexts_[rank], tensor, slices[q].begin, slices[q].size());
    };
    const Tensor own = part(rank);
    if (shared_size_[rank] < slices[rank].size()) {
        shared_[rank] = HostMemory(contexts_[rank], own.bytes(), ways_[rank]);
        shared_size_[rank] = slices[rank].size();
    }
    first.read(place_of(own), shared_[rank].data(), own.bytes(), true);
    barrier_->arrive(rank, "to share what it has updated");
    for (std::size_t q = 0; q < size(); ++q) {
        if (q == rank) continue;
        const Tensor theirs = part(q);
        first.write(place_of(theirs), shared_[q].data(), theirs.bytes(), false);
    }
}

void Exchange::broadcast(std::size_t rank, const Tensor& tensor) {
    Queue& queue = Access::impl(contexts_[rank]).queue();
    const bool is_first = number(rank) == 0;
    if (is_first || group_) {
        if (broadcast_bytes_ < tensor.bytes()) {
            broadcast_ = HostMemory(contexts_[0], tensor.bytes(), ways_[0]);
            broadcast_bytes_ = tensor.bytes();
        }
    }
    if (is_first) queue.read(place_of(tensor), broadcast_.data(), tensor.bytes(), true);
    barrier_->arrive(rank, "to share values of the first device");
    if (group_)
        group_->await_broadcast(broadcast_.data(), tensor.bytes(), "values of the first device");
    if (!is_first) queue.write(place_of(tensor), broadcast_.data(), tensor.bytes(), true);
    barrier_->arrive(rank, "to go on with values of the first device");
}

}  // namespace dlprim
