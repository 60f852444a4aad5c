// SPDX-License-Identifier: MIT
// Exchange. The buffers of a rank are written by that rank alone. It writes to them again only
// after a barrier that the others pass when they have read them. Where all ranks add a group there
// is no such barrier, and begin() waits for the others instead. What share() has enqueued is read
// before the sums of the next step are there.
#include "collective/exchange/exchange.hpp"

#include "base/text.hpp"
#include "collective/devices/ordered_sum.hpp"
#include "collective/devices/places.hpp"
#include "collective/devices/second_queue.hpp"
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
      rooms_(parts_.size()),
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
        ShardTree tree(shards_);
        for (int shard = part.first; shard < part.end(); ++shard) tree.take({shard, 1});
        pending_.push_back(tree.pending());
    }
    learn_numbers();
    const std::size_t ranks = group_ ? processes_.back().end : contexts_.size();
    require(next == shards_ && parts_.size() == ranks, "the devices have ", next, " shards of ",
            shards_);
    for (const Context& context : contexts_) second_.push_back(beside(context));
    for (const Context& context : second_) ways_.push_back(choose_way(context, second_));
    choose_levels();
    make_piece_exchanges();
    peers_ =
        group_ ? PeerChoice{nullptr, "processes exchange by a transport"} : choose(second_, add_);
    // A barrier may take as long as the deadline, and a job passes two.
    for (std::size_t rank = 0; rank < contexts_.size(); ++rank)
        lines_.push_back(std::make_unique<Line>());
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
    rooms_.at(number(rank)).resize(groups);
    for (std::size_t q = 0; rank == 0 && q < size(); ++q)
        if (!own_.has(q)) rooms_[q].resize(groups);
}

Exchange::Slice Exchange::slice(std::int64_t elements, std::size_t number) const {
    const auto ranks = static_cast<std::int64_t>(size()), index = static_cast<std::int64_t>(number);
    const std::int64_t grains = (elements + grain - 1) / grain;
    return {std::min(elements, grains * index / ranks * grain),
            std::min(elements, grains * (index + 1) / ranks * grain)};
}

std::string Exchange::way(std::size_t rank) const {
    if (shared_host_) return pins_shared_ ? "pinned shared memory" : "shared memory";
    return peers_.source ? peers_.source->name() : text_of(ways_.at(rank));
}

std::vector<StagingBuffer> Exchange::make_buffers(std::size_t rank,
                                                  const std::vector<std::uint64_t>& bytes) {
    std::vector<StagingBuffer> buffers;
    if (!peers_.source) {
        for (const std::uint64_t each : bytes)
            buffers.emplace_back(second_[rank], each, ways_[rank]);
        return buffers;
    }
    std::vector<std::uint64_t> begins;
    std::uint64_t end = 0;
    for (const std::uint64_t each : bytes) {
        begins.push_back(end);
        end += padded(each);
    }
    const std::shared_ptr<PeerMemory> memory = peers_.source->make(rank, end);
    for (const std::uint64_t begin : begins) buffers.emplace_back(memory, begin);
    return buffers;
}

void Exchange::make_rooms(std::size_t rank, std::size_t group, const std::vector<Term>& terms) {
    const std::size_t self = number(rank);
    Rooms& rooms = rooms_[self].at(group);
    if (!rooms.empty()) return;
    if (is_reached(rank, terms)) {
        rooms.emplace_back();
        for (const Tensor& sum : terms[0].waiting) rooms[0].sums.push_back(*buffer_of(rank, sum));
        return;
    }
    if (shared_host_) {
        barrier_->arrive(rank, "to make shared memory");
        if (rank == 0) make_shared_rooms(group, terms);
        await_transport(rank, "shared memory");
    } else {
        make_own_rooms(rank, rooms, terms);
    }
    for (std::size_t t = 0; t < terms.size(); ++t)
        make_carries(rank, rooms[t], divide(terms[t].mean), terms[t].mean);
}

void Exchange::make_own_rooms(std::size_t rank, Rooms& rooms, const std::vector<Term>& terms) {
    const bool is_alone = memory_.size() == 1;
    std::vector<std::uint64_t> bytes;
    for (const Term& term : terms) {
        for (const Tensor& sum : term.waiting)
            if (!is_alone && !buffer_of(rank, sum)) bytes.push_back(sum.bytes());
        bytes.push_back(bytes_of(term.mean, kept_of(divide(term.mean), number(rank)).size()));
    }
    const std::vector<StagingBuffer> buffers = make_buffers(rank, bytes);
    auto next = buffers.begin();
    for (const Term& term : terms) {
        Room room;
        for (const Tensor& sum : term.waiting) {
            if (is_alone) continue;
            const std::optional<StagingBuffer> there = buffer_of(rank, sum);
            room.sums.push_back(there ? *there : *next++);
        }
        room.kept = kept_of(divide(term.mean), number(rank));
        room.mean = *next++;
        rooms.push_back(std::move(room));
    }
}

LevelPlan::Division Exchange::divide(const Tensor& tensor) const {
    return {*plan_, tensor.shape().numel(), grain};
}

Exchange::Slice Exchange::kept_of(const LevelPlan::Division& division, std::size_t number) {
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

void Exchange::send_sums(std::size_t rank, Rooms& rooms, const std::vector<Term>& terms) {
    const bool all_read = is_added_by_all(rank, terms);
    for (std::size_t t = 0; t < terms.size(); ++t)
        for (std::size_t i = 0; i < rooms[t].sums.size(); ++i) {
            const Tensor& sum = terms[t].waiting.at(i);
            if (buffer_of(rank, sum)) continue;
            // Nobody else reads what the rank alone adds.
            const Slice kept = all_read ? Slice{} : rooms[t].kept;
            const std::int64_t end = sum.shape().numel();
            for (const Slice& part : {Slice{0, kept.begin}, Slice{kept.end, end}})
                if (part.size() > 0)
                    rooms[t].sums[i].put(second_[rank], rank,
                                         elements_of(second_[rank], sum, part.begin, part.size()),
                                         bytes_of(sum, part.begin));
        }
    queue(rank).finish();
}

Tensor Exchange::next_staging(std::size_t rank, Room& room, std::int64_t elements, DType dtype) {
    if (room.staged == room.staging.size())
        room.staging.emplace_back(second_[rank], Shape{elements}, dtype);
    return room.staging[room.staged++];
}

Exchange::Holdings Exchange::add_slice(std::size_t rank, std::size_t group, std::size_t tensor,
                                       const Term& term) {
    const std::size_t self = number(rank);
    Room& room = rooms_[self][group][tensor];
    const Slice own = room.kept;
    const DType dtype = term.mean.dtype();
    room.staged = 0;
    if (own.size() == 0) return {};
    // Where kernels reach the sums, two of others can be the first to be added.
    OrderedSum adder(shards_, add_, [&](const Tensor& left, bool is_mean) {
        if (!room.mean.is_reached()) return std::vector{left};
        return std::vector{is_mean ? room.mean.view(second_[rank], rank, 0, own.size(), dtype)
                                   : next_staging(rank, room, own.size(), dtype)};
    });
    take_sums(rank, group, tensor, term, own, adder);
    return {{own, adder.sums()}};
}

void Exchange::take_sums(std::size_t rank, std::size_t group, std::size_t tensor, const Term& term,
                         const Slice& range, OrderedSum& adder) {
    const std::size_t self = number(rank);
    const DType dtype = term.mean.dtype();
    const std::uint64_t begin = bytes_of(term.mean, range.begin);
    for (const LevelPlan::Addend& addend : plan_->addends(self, 0)) {
        const std::size_t q = memory_[addend.member];
        if (q == self) {
            adder.take(addend.shards, elements_of(second_[rank], term.waiting[addend.node],
                                                  range.begin, range.size()));
            continue;
        }
        const StagingBuffer& theirs = rooms_[q][group][tensor].sums[addend.node];
        if (theirs.is_reached()) {
            adder.take(addend.shards, theirs.view(second_[rank], rank, begin, range.size(), dtype));
        } else {
            const Tensor copy =
                next_staging(rank, rooms_[self][group][tensor], range.size(), dtype);
            theirs.get(second_[rank], rank, begin, copy);
            adder.take(addend.shards, copy);
        }
    }
}

void Exchange::add_all(std::size_t rank, std::size_t group, std::size_t tensor, const Term& term) {
    Room& room = rooms_[number(rank)][group][tensor];
    const Slice whole{0, term.mean.shape().numel()};
    const DType dtype = term.mean.dtype();
    room.staged = 0;
    OrderedSum adder(shards_, add_, [&](const Tensor&, bool is_mean) {
        return std::vector{is_mean ? elements_of(second_[rank], term.mean, 0, whole.size())
                                   : next_staging(rank, room, whole.size(), dtype)};
    });
    take_sums(rank, group, tensor, term, whole, adder);
}

void Exchange::send_means(std::size_t rank, const Room& room, const Holdings& held) {
    for (const Held& each : held)
        if (const Tensor& mean = each.sums.front(); !room.mean.is_reached())
            room.mean.put(second_[rank], rank, mean,
                          bytes_of(mean, each.range.begin - room.kept.begin));
}

void Exchange::receive_means(std::size_t rank, std::size_t group, std::size_t tensor,
                             const Tensor& mean, const Holdings& held) {
    for (const std::size_t q : memory_) {
        const Room& room = rooms_[q][group][tensor];
        if (room.kept.size() == 0) continue;
        const Tensor target = elements_of(second_[rank], mean, room.kept.begin, room.kept.size());
        // Further levels have brought parts of what the rank keeps itself.
        if (q != number(rank) || plan_->stages() > 1)
            room.mean.get(second_[rank], rank, 0, target);
        else if (const Tensor& sum = held.front().sums.front(); !are_same(sum, target))
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
    make_rooms(rank, group, terms);
    Rooms& rooms = rooms_[number(rank)][group];
    TracePhases phases(trace_.get(), rank, TraceRow::exchange, static_cast<std::int64_t>(group));
    phases.next(TraceKind::move, "send sums");
    send_sums(rank, rooms, terms);
    phases.next(TraceKind::wait, "wait for the sums of others");
    barrier_->arrive(rank, "to add sums " + what);
    meet_on_host(rank, group, terms, "sums " + what);
    if (is_added_by_all(rank, terms)) {
        phases.next(TraceKind::move, "add all");
        for (std::size_t t = 0; t < terms.size(); ++t) add_all(rank, group, t, terms[t]);
        return;
    }
    phases.next(TraceKind::move, "add slice");
    std::vector<Holdings> held;
    for (std::size_t t = 0; t < terms.size(); ++t)
        held.push_back(add_slice(rank, group, t, terms[t]));
    for (std::size_t level = 1; level < plan_->stages(); ++level) {
        phases.next(TraceKind::move, "fetch sums of other processes");
        add_level(rank, level, group, terms, held, what);
    }
    for (std::size_t t = 0; t < terms.size(); ++t) send_means(rank, rooms[t], held[t]);
    queue(rank).finish();
    phases.next(TraceKind::wait, "wait for the means of others");
    barrier_->arrive(rank, "to receive sums " + what);
    if (plan_->stages() > 1) phases.next(TraceKind::move, "fetch means of other processes");
    return_means(rank, group, terms, "means " + what);
    phases.next(TraceKind::move, "receive means");
    for (std::size_t t = 0; t < terms.size(); ++t)
        receive_means(rank, group, t, terms[t].mean, held[t]);
}

Exchange::Group Exchange::take(std::size_t rank, std::size_t group) {
    Line& line = *lines_[rank];
    const std::lock_guard lock(line.mutex);
    return line.groups.at(group);
}

void Exchange::serve(std::size_t rank, std::size_t group) {
    Line& line = *lines_[rank];
    if (group == 0) line.next = 0;
    if (group < line.next) return;  // went with one before it
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
        line.next = group + 1;
    }
    const std::lock_guard lock(line.mutex);
    line.groups.erase(line.groups.begin(), line.groups.lower_bound(line.next));
}

void Exchange::announce_end(std::size_t rank, std::size_t end) {
    if (end == rooms_[number(rank)].size()) movers_[rank]->announce_end();
}

void Exchange::start(std::size_t rank, std::size_t group, std::vector<Term> terms,
                     std::shared_ptr<EventImpl> ready) {
    {
        const std::lock_guard lock(lines_[rank]->mutex);
        lines_[rank]->groups[group] = {std::move(terms), std::move(ready)};
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
