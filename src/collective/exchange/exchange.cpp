// SPDX-License-Identifier: MIT
// Exchange. The buffers of a rank are written by that rank alone. It writes to them again only
// after a barrier that the others pass when they have read them. Where all ranks add a group there
// is no such barrier, and begin() waits for the others instead. What share() has enqueued is read
// before the sums of the next step are there.
#include "collective/exchange/exchange.hpp"

#include "base/text.hpp"
#include "collective/devices/ordered_sum.hpp"
#include "collective/devices/places.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/event_impl.hpp"
#include "runtime/opencl_program.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

namespace dlprim {

Exchange::Exchange(std::vector<Context> contexts, int shards, std::vector<ShardRange> parts,
                   std::shared_ptr<Barrier> barrier, AddPair add,
                   std::shared_ptr<ProcessGroup> group, const ChoosePeers& choose)
    : contexts_(std::move(contexts)),
      shards_(shards),
      parts_(std::move(parts)),
      barrier_(std::move(barrier)),
      add_(std::move(add)),
      group_(std::move(group)),
      buffers_(parts_.size()),
      waiting_(contexts_.size()),
      shared_(contexts_.size()),
      shared_size_(contexts_.size(), 0),
      taken_(contexts_.size()),
      turns_(contexts_.size(), 0),
      small_(contexts_.size()),
      finished_(contexts_.size()),
      staging_(contexts_.size()) {
    int next = 0;
    for (const ShardRange& part : parts_) {
        require(part.first == next && part.count > 0,
                "devices must have shards that follow each "
                "other, at least one each");
        next = part.end();
    }
    learn_numbers();
    require(next == shards_ && parts_.size() == processes_.back().end, "the devices have ", next,
            " shards of ", shards_);
    for (const Context& context : contexts_) second_.push_back(beside(context));
    for (const Context& context : second_) ways_.push_back(choose_way(context, second_));
    for (Values& values : values_) values.resize(parts_.size());
    choose_levels();
    make_piece_exchanges();
    peers_ =
        group_ ? PeerChoice{nullptr, "processes exchange by a transport"} : choose(second_, add_);
    // A barrier may take as long as the deadline, and a job passes two.
    for (std::size_t rank = 0; rank < contexts_.size(); ++rank)
        started_.push_back(std::make_unique<Started>());
    for (std::size_t rank = 0; rank < contexts_.size(); ++rank)
        movers_.push_back(std::make_unique<Mover>(3 * barrier_->deadline(), barrier_->spin()));
}

Exchange::~Exchange() {
    if (opencl_gone()) return;
    for (const Context& context : second_) {
        try {
            Access::impl(context).queue().finish();
        } catch (const std::exception&) {
            // Who used the device has been told of its failure.
        }
    }
    for (std::size_t rank = 0; rank < taken_.size(); ++rank) {
        if (!taken_[rank]) continue;
        try {
            taken_[rank]->wait();
        } catch (const std::exception&) {
            // What the rank's own work has refused is for who waits for that next.
            Access::impl(contexts_[rank]).queue().throw_later(std::current_exception());
        }
    }
}

Queue& Exchange::queue(std::size_t rank) {
    return Access::impl(second_[rank]).queue();
}

void Exchange::expect(std::size_t rank, std::size_t groups, std::uint64_t small) {
    small_.at(rank) = small;
    buffers_.at(number(rank)).resize(groups);
    for (std::size_t q = 0; rank == 0 && q < size(); ++q)
        if (!own_.has(q)) buffers_[q].resize(groups);
}

std::string Exchange::way(std::size_t rank) const {
    if (shared_host_) return pins_shared_ ? "pinned shared memory" : "shared memory";
    return peers_.source ? peers_.source->name() : text_of(ways_.at(rank));
}

void Exchange::make_buffers(std::size_t rank, std::size_t group, const Terms& terms) {
    const std::size_t self = number(rank);
    std::vector<Buffers>& buffers = buffers_[self].at(group);
    if (!buffers.empty()) return;
    if (is_reached(rank, terms)) {
        buffers.emplace_back();
        for (const Tensor& sum : terms[0].waiting) buffers[0].sums.push_back(*buffer_of(rank, sum));
        return;
    }
    if (shared_host_) {
        barrier_->arrive(rank, "to make shared memory");
        by_first(rank, "shared memory", [&] { share_buffers(group_->rank(), group, terms); });
    } else {
        const RankRange own{self, self + 1};
        const std::uint64_t bytes = lay_out(own, group, terms, nullptr);
        const StagingBuffer memory = peers_.source
                                         ? StagingBuffer(peers_.source->make(rank, bytes), 0)
                                         : StagingBuffer(second_[rank], bytes, ways_[rank]);
        lay_out(own, group, terms, &memory);
    }
    for (std::size_t t = 0; t < terms.size(); ++t) make_levels(rank, buffers[t], terms[t].mean);
}

std::uint64_t Exchange::lay_out(const RankRange& ranks, std::size_t group, const Terms& terms,
                                const StagingBuffer* memory) {
    std::uint64_t end = 0;
    const auto take = [&](std::uint64_t bytes) {
        const std::uint64_t begin = std::exchange(end, end + padded(bytes));
        return memory != nullptr ? memory->part(begin) : StagingBuffer();
    };
    const bool is_alone = memory_.size() == 1;  // nobody reads its sums
    for (std::size_t q = ranks.begin; q < ranks.end; ++q) {
        std::vector<Buffers> all;
        for (const Term& term : terms) {
            Buffers& buffers = all.emplace_back();
            for (std::size_t i = 0; i < plan_->nodes(q, 0).size() && !is_alone; ++i) {
                const auto there =
                    shared_host_ ? std::nullopt : buffer_of(q - own_.begin, term.waiting.at(i));
                buffers.sums.push_back(there ? *there : take(term.mean.bytes()));
            }
            buffers.slice = slice_of(divide(term.mean), q);
            buffers.mean = take(bytes_of(term.mean, buffers.slice.size()));
        }
        if (memory != nullptr) buffers_[q].at(group) = std::move(all);
    }
    return end;
}

LevelPlan::Division Exchange::divide(const Tensor& tensor) const {
    return {*plan_, tensor.shape().numel(), grain};
}

Exchange::Slice Exchange::slice_of(const LevelPlan::Division& division, std::size_t number) {
    const std::vector<Slice> kept = division.held(number, 1);
    return kept.empty() ? Slice{} : kept.front();
}

bool Exchange::is_added_by_all(std::size_t rank, const std::vector<Term>& terms) const {
    std::uint64_t bytes = 0;
    for (const Term& term : terms) bytes += term.mean.bytes();
    // Other processes have no begin(), which keeps sums until all have read them.
    return memory_.size() == contexts_.size() && plan_->stages() == 1 &&
           bytes * (size() - 1) <= small_[rank];
}

void Exchange::send_sums(std::size_t rank, const Terms& terms,
                         const std::vector<Buffers>& buffers) {
    const bool all_read = is_added_by_all(rank, terms);
    for (std::size_t t = 0; t < terms.size(); ++t)
        for (std::size_t i = 0; i < buffers[t].sums.size(); ++i) {
            const Tensor& sum = terms[t].waiting.at(i);
            if (buffer_of(rank, sum)) continue;
            // Nobody else reads what the rank alone adds.
            const Slice own = all_read ? Slice{} : buffers[t].slice;
            const std::int64_t end = sum.shape().numel();
            for (const Slice& part : {Slice{0, own.begin}, Slice{own.end, end}})
                if (part.size() > 0)
                    buffers[t].sums[i].put(second_[rank], rank, part_of(rank, sum, part),
                                           bytes_of(sum, part.begin));
        }
    queue(rank).finish();
}

Exchange::Chunks Exchange::add_sums(std::size_t rank, std::size_t group, std::size_t tensor,
                                    const Term& term, const Slice& range,
                                    const std::vector<Tensor>& means) {
    if (range.size() == 0) return {};
    const std::size_t self = number(rank);
    const DType dtype = term.mean.dtype();
    const std::uint64_t begin = bytes_of(term.mean, range.begin);
    OrderedSum adder(shards_, add_, [&](const Tensor& left, bool is_mean) {
        if (means.empty()) return std::vector{left};
        return is_mean ? means : std::vector{staging(rank, range.size(), dtype)};
    });
    for (const LevelPlan::Addend& addend : plan_->addends(self, 0)) {
        const std::size_t q = memory_[addend.member];
        if (q == self) {
            adder.take(addend.shards, part_of(rank, term.waiting[addend.node], range));
            continue;
        }
        const StagingBuffer& theirs = buffers_[q][group][tensor].sums[addend.node];
        if (theirs.is_reached()) {
            adder.take(addend.shards, theirs.view(second_[rank], rank, begin, range.size(), dtype));
        } else {
            const Tensor copy = staging(rank, range.size(), dtype);
            theirs.get(second_[rank], rank, begin, copy);
            adder.take(addend.shards, copy);
        }
    }
    return {{range, adder.sums()}};
}

Exchange::Chunks Exchange::add_slice(std::size_t rank, std::size_t group, std::size_t tensor,
                                     const Term& term) {
    const Buffers& buffers = buffers_[number(rank)][group][tensor];
    const std::int64_t count = buffers.slice.size();
    std::vector<Tensor> means;
    if (buffers.mean.is_reached() && count > 0)
        means.push_back(buffers.mean.view(second_[rank], rank, 0, count, term.mean.dtype()));
    return add_sums(rank, group, tensor, term, buffers.slice, means);
}

void Exchange::send_means(std::size_t rank, const Buffers& buffers, const Chunks& chunks) {
    for (const Chunk& chunk : chunks)
        if (const Tensor& mean = chunk.sums.front(); !buffers.mean.is_reached())
            buffers.mean.put(second_[rank], rank, mean,
                             bytes_of(mean, chunk.range.begin - buffers.slice.begin));
}

void Exchange::receive_means(std::size_t rank, std::size_t group, std::size_t tensor,
                             const Tensor& mean, const Chunks& chunks) {
    for (const std::size_t q : memory_) {
        const Buffers& buffers = buffers_[q][group][tensor];
        const Slice& slice = buffers.slice;
        if (slice.size() == 0) continue;
        const Tensor target = part_of(rank, mean, slice);
        // Further levels have brought parts of what the rank keeps itself.
        if (q != number(rank) || plan_->stages() > 1)
            buffers.mean.get(second_[rank], rank, 0, target);
        else if (const Tensor& sum = chunks.front().sums.front(); !are_same(sum, target))
            queue(rank).copy(place_of(sum), place_of(target), target.bytes());
    }
}

void Exchange::add_up(std::size_t rank, std::size_t group, const std::vector<Term>& terms) {
    std::int64_t elements = 0;
    for (const Term& term : terms) elements += term.mean.shape().numel();
    const std::string what =
        cat("over shards (part ", group, " of the step, ", elements, " elements)");
    const bool floats = std::all_of(terms.begin(), terms.end(), [](const Term& term) {
        return term.mean.dtype() == DType::f32;
    });
    if (any_order_ && floats) return add_in_any_order(rank, group, terms, what);
    make_buffers(rank, group, terms);
    staging_[rank].restart();
    const std::vector<Buffers>& buffers = buffers_[number(rank)][group];
    TracePhases phases(trace_.get(), rank, TraceRow::exchange, static_cast<std::int64_t>(group));
    phases.next(TraceKind::move, "send sums");
    send_sums(rank, terms, buffers);
    phases.next(TraceKind::wait, "wait for the sums of others");
    barrier_->arrive(rank, "to add sums " + what);
    const std::string sums = "sums " + what;
    if (shared_host_) by_first(rank, sums, [&] { meet_on_host(group, terms, sums); });
    if (is_added_by_all(rank, terms)) {
        phases.next(TraceKind::move, "add all");
        for (std::size_t t = 0; t < terms.size(); ++t) {
            const Slice all{0, terms[t].mean.shape().numel()};
            add_sums(rank, group, t, terms[t], all, {part_of(rank, terms[t].mean, all)});
        }
        return;
    }
    phases.next(TraceKind::move, "add slice");
    std::vector<Chunks> chunks;
    for (std::size_t t = 0; t < terms.size(); ++t)
        chunks.push_back(add_slice(rank, group, t, terms[t]));
    for (std::size_t level = 1; level < plan_->stages(); ++level) {
        phases.next(TraceKind::move, "fetch sums of other processes");
        add_level(rank, level, group, terms, chunks, what);
    }
    for (std::size_t t = 0; t < terms.size(); ++t) send_means(rank, buffers[t], chunks[t]);
    queue(rank).finish();
    phases.next(TraceKind::wait, "wait for the means of others");
    barrier_->arrive(rank, "to receive sums " + what);
    if (plan_->stages() > 1) phases.next(TraceKind::move, "fetch means of other processes");
    return_means(rank, group, terms, "means " + what);
    phases.next(TraceKind::move, "receive means");
    for (std::size_t t = 0; t < terms.size(); ++t)
        receive_means(rank, group, t, terms[t].mean, chunks[t]);
}

Exchange::Group Exchange::take(std::size_t rank, std::size_t group) {
    Started& started = *started_[rank];
    const std::lock_guard lock(started.mutex);
    return started.groups.at(group);
}

void Exchange::serve(std::size_t rank, std::size_t group) {
    Started& started = *started_[rank];
    if (group == 0) started.next = 0;
    if (group < started.next) return;  // went with one before it
    const Group first = take(rank, group);
    {
        TracePhases phases(trace_.get(), rank, TraceRow::exchange,
                           static_cast<std::int64_t>(group));
        phases.next(TraceKind::wait, "wait for the device");
        first.ready->wait();
    }
    if (is_reached(rank, first.terms)) {
        add_neighbours(rank, group);
    } else {
        announce_end(rank, group + 1);
        add_up(rank, group, first.terms);
        started.next = group + 1;
    }
    const std::lock_guard lock(started.mutex);
    started.groups.erase(started.groups.begin(), started.groups.lower_bound(started.next));
}

void Exchange::announce_end(std::size_t rank, std::size_t end) {
    if (end == buffers_[number(rank)].size()) movers_[rank]->announce_end();
}

void Exchange::start(std::size_t rank, std::size_t group, std::vector<Term> terms,
                     std::shared_ptr<EventImpl> ready) {
    {
        const std::lock_guard lock(started_[rank]->mutex);
        started_[rank]->groups[group] = {std::move(terms), std::move(ready)};
    }
    movers_[rank]->post([self = shared_from_this(), rank, group] {
        try {
            self->serve(rank, group);
        } catch (const Error& error) {
            self->barrier_->fail(rank, error);  // at once, since the rank's own thread may be busy
            throw;
        }
    });
}

void Exchange::finish(std::size_t rank) {
    TracePhases host(trace_.get(), rank, TraceRow::host);
    host.next(TraceKind::wait, "wait for the exchange");
    movers_[rank]->wait();
    TracePhases last(trace_.get(), rank, TraceRow::exchange);
    last.next(TraceKind::move, "receive means");
    queue(rank).finish();  // whose last work are the means that were received
    ++finished_[rank];
}

void Exchange::begin(std::size_t rank) {
    // They end a step within microseconds of each other, so that there is hardly anything to wait
    // for.
    TracePhases phases(trace_.get(), rank, TraceRow::host);
    phases.next(TraceKind::wait, "wait for others to take the means");
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::duration<double>(barrier_->deadline());
    for (std::size_t q = 0; q < contexts_.size(); ++q)
        while (finished_[q] < finished_[rank]) {
            barrier_->check();
            if (Clock::now() > until)
                barrier_->fail(
                    q, Error(ErrorKind::device, cat("has not received the sums of a step within ",
                                                    barrier_->deadline().count(), " seconds")));
            std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
}

void Exchange::share(std::size_t rank, const Tensor& tensor, const std::vector<Slice>& slices) {
    if (group_) return share_among_processes(rank, tensor, slices);
    Queue& first = Access::impl(contexts_[rank]).queue();
    const auto part = [&](std::size_t q) {
        return elements_of(contexts_[rank], tensor, slices[q].begin, slices[q].size());
    };
    const Tensor own = part(rank);
    if (shared_size_[rank] < slices[rank].size()) {
        shared_[rank] = StagingBuffer(contexts_[rank], own.bytes(), ways_[rank]);
        shared_size_[rank] = slices[rank].size();
    }
    first.read(place_of(own), shared_[rank].data(), own.bytes(), true);
    barrier_->arrive(rank, "to share what it has updated");
    for (std::size_t q = 0; q < size(); ++q) {
        if (q == rank) continue;
        const Tensor theirs = part(q);
        first.write(place_of(theirs), shared_[q].data(), theirs.bytes(), false);
    }
    taken_[rank] = Access::impl(contexts_[rank]).record({});
}

}  // namespace dlprim
