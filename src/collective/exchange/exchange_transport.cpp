// SPDX-License-Identifier: MIT
// Exchange: what goes by the transport of several processes. The first rank of each process
// exchanges for all of its ranks, so that the transport has one caller. What it brings lies in host
// memory, where all ranks of the process read it.
//
// Levels above the first are among ranks that share no memory. A rank sends to each rank that holds
// the same elements the part which that one adds, with all its sums that wait, and receives such
// parts of its own:
//
//   device --> sent --transport--> received of another rank --> its device: additions
//   mean of what is kept <--transport-- mean of another rank, back in the reverse order of levels
//
// Where the transport may add in an order of its own, there are no levels: each rank adds its sums
// on its device, and the first rank of the process those of its ranks on the host.
#include "collective/exchange/exchange.hpp"

#include "base/text.hpp"
#include "collective/devices/ordered_sum.hpp"
#include "collective/devices/places.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

namespace {

/// Bytes from a rank to another.
struct RankMessage {
    std::size_t giver, receiver;
    MessagePiece piece;
};

/// Appends messages between two processes in an order that both sides see.
void append(Pieces& pieces, std::vector<RankMessage>& messages) {
    std::stable_sort(messages.begin(), messages.end(),
                     [](const RankMessage& a, const RankMessage& b) {
                         return std::pair(a.giver, a.receiver) < std::pair(b.giver, b.receiver);
                     });
    for (const RankMessage& message : messages) pieces.push_back(message.piece);
}

}  // namespace

void Exchange::learn_numbers() {
    const std::uint64_t own = contexts_.size();
    std::vector<std::uint64_t> counts{own};
    if (group_) {
        counts.resize(group_->size());
        group_->allgather(&own, sizeof(own), counts.data(), "how many devices each process has");
    }
    for (const std::uint64_t count : counts) {
        const std::size_t begin = processes_.empty() ? 0 : processes_.back().end;
        processes_.push_back({begin, begin + count});
    }
    own_ = processes_[group_ ? group_->rank() : 0];
}

std::size_t Exchange::process_of(std::size_t number) const {
    std::size_t process = 0;
    while (!processes_[process].has(number)) ++process;
    return process;
}

void Exchange::by_first(std::size_t rank, const std::string& what,
                        const std::function<void()>& work) {
    if (rank == 0) work();
    if (group_ && contexts_.size() > 1)
        barrier_->arrive(rank, "for the first device of this process to bring " + what);
}

void Exchange::make_levels(std::size_t rank, Buffers& buffers, const Tensor& tensor) {
    const std::size_t self = number(rank);
    const LevelPlan::Division division = divide(tensor);
    for (std::size_t level = 1; level < plan_->stages(); ++level) {
        LevelMessages messages;
        messages.stage = division.stage(self, level);
        const auto nodes = [&](std::size_t q) {
            return static_cast<std::int64_t>(plan_->nodes(q, level).size());
        };
        std::int64_t sent = 0, received = 0;
        for (const auto& message : messages.stage.sends) sent += message.range.size() * nodes(self);
        for (const auto& message : messages.stage.receives)
            received += message.range.size() * nodes(message.rank);
        messages.sent = StagingBuffer(second_[rank], bytes_of(tensor, sent), ways_[rank]);
        messages.received = StagingBuffer(second_[rank], bytes_of(tensor, received), ways_[rank]);
        buffers.levels.push_back(std::move(messages));
    }
}

void Exchange::add_level(std::size_t rank, std::size_t level, std::size_t group, const Terms& terms,
                         std::vector<Chunks>& chunks, const std::string& what) {
    const std::vector<Buffers>& buffers = buffers_[number(rank)][group];
    for (std::size_t t = 0; t < terms.size(); ++t)
        send_chunks(rank, level, buffers[t].levels[level - 1], chunks[t]);
    queue(rank).finish();
    const std::string sums = cat("sums of level ", level, " ", what);
    barrier_->arrive(rank, "to send " + sums);
    by_first(rank, sums, [&] { exchange_messages(level, group, terms, false, sums); });
    for (std::size_t t = 0; t < terms.size(); ++t)
        chunks[t] = add_chunks(rank, level, buffers[t].levels[level - 1], terms[t].mean, chunks[t]);
}

void Exchange::send_chunks(std::size_t rank, std::size_t level, const LevelMessages& messages,
                           const Chunks& chunks) {
    std::byte* at = messages.sent.data();
    for (const auto& [other, range] : messages.stage.sends)
        for (std::size_t node = 0; node < plan_->nodes(number(rank), level).size(); ++node) {
            const Tensor part = part_of(rank, chunks, node, range);
            queue(rank).read(place_of(part), at, part.bytes(), false);
            at += part.bytes();
        }
}

Tensor Exchange::part_of(std::size_t rank, const Chunks& chunks, std::size_t node,
                         const Slice& range) const {
    const auto home = std::find_if(chunks.begin(), chunks.end(), [&](const Chunk& each) {
        return each.range.begin <= range.begin && range.end <= each.range.end;
    });
    return elements_of(second_[rank], home->sums.at(node), range.begin - home->range.begin,
                       range.size());
}

Exchange::Chunks Exchange::add_chunks(std::size_t rank, std::size_t level,
                                      const LevelMessages& messages, const Tensor& tensor,
                                      const Chunks& chunks) {
    const std::size_t self = number(rank);
    const std::byte* at = messages.received.data();
    Chunks result;
    for (const LevelPlan::Division::Kept& kept : messages.stage.keeps) {
        // What each holder has sent of these elements, in the order of messages.
        const std::uint64_t bytes = bytes_of(tensor, kept.range.size());
        std::vector<const std::byte*> begins;
        for (const std::size_t holder : kept.holders) {
            begins.push_back(at);
            if (holder != self) at += bytes * plan_->nodes(holder, level).size();
        }
        OrderedSum adder(shards_, add_, [](const Tensor& left, bool) { return std::vector{left}; });
        for (const LevelPlan::Addend& addend : plan_->addends(self, level)) {
            if (kept.holders[addend.member] == self) {
                adder.take(addend.shards, part_of(rank, chunks, addend.node, kept.range));
                continue;
            }
            const Tensor copy = staging(rank, kept.range.size(), tensor.dtype());
            queue(rank).write(place_of(copy), begins[addend.member] + bytes * addend.node, bytes,
                              false);
            adder.take(addend.shards, copy);
        }
        result.push_back({kept.range, adder.sums()});
    }
    return result;
}

void Exchange::exchange_messages(std::size_t level, std::size_t group, const Terms& terms,
                                 bool means, const std::string& what) {
    std::vector<Pieces> to(processes_.size()), from(processes_.size());
    for (std::size_t t = 0; t < terms.size(); ++t) {
        std::vector<std::vector<RankMessage>> sent(processes_.size()), received(processes_.size());
        for (std::size_t q = own_.begin; q < own_.end; ++q) {
            const Buffers& buffers = buffers_[q][group][t];
            const LevelMessages& own = buffers.levels[level - 1];
            const auto list = [&](const StagingBuffer& memory, const auto& messages, bool is_sent) {
                std::byte* next = memory.data();  // sums lie behind each other, and means in place
                for (const auto& [other, range] : messages) {
                    const std::size_t giver = is_sent ? q : other;
                    std::uint64_t bytes = bytes_of(terms[t].mean, range.size());
                    if (means)
                        next = buffers.mean.data() +
                               bytes_of(terms[t].mean, range.begin - buffers.slice.begin);
                    else
                        bytes *= plan_->nodes(giver, level).size();
                    (is_sent ? sent : received)[process_of(other)].push_back(
                        {giver, is_sent ? other : q, {next, bytes}});
                    next += bytes;
                }
            };
            // Means are the reverse of what went there.
            list(own.sent, means ? own.stage.receives : own.stage.sends, true);
            list(own.received, means ? own.stage.sends : own.stage.receives, false);
        }
        for (std::size_t p = 0; p < processes_.size(); ++p) {
            append(to[p], sent[p]);
            append(from[p], received[p]);
        }
    }
    group_->exchange(to, from, what);
}

void Exchange::return_means(std::size_t rank, std::size_t group, const Terms& terms,
                            const std::string& what) {
    if (!shared_host_ && plan_->stages() == 1) return;
    by_first(rank, what, [&] {
        for (std::size_t level = plan_->stages(); --level > 0;)
            exchange_messages(level, group, terms, true, cat("level ", level, " of ", what));
        if (shared_host_) meet_on_host(group, terms, what);
    });
}

void Exchange::allow_any_order() {
    any_order_ = group_ != nullptr && group_->can_add();
}

void Exchange::add_in_any_order(std::size_t rank, std::size_t group, const Terms& terms,
                                const std::string& what) {
    const auto sums_of = [&](std::size_t q, std::size_t t) {
        return reinterpret_cast<float*>(buffers_[q][group][t].sums[0].data());
    };
    const std::size_t self = number(rank);
    std::vector<Buffers>& buffers = buffers_[self].at(group);
    TracePhases phases(trace_.get(), rank, TraceRow::exchange, static_cast<std::int64_t>(group));
    phases.next(TraceKind::move, "send sums");
    for (std::size_t t = 0; t < terms.size(); ++t) {
        const Tensor& sum = terms[t].waiting.at(0);
        if (buffers.size() == t) {
            buffers.emplace_back();
            buffers[t].sums.emplace_back(second_[rank], sum.bytes(), ways_[rank]);
        }
        const Slice all{0, sum.shape().numel()};
        const Tensor first = part_of(rank, sum, all);
        for (std::size_t i = 1; i < terms[t].waiting.size(); ++i)
            add_(first, part_of(rank, terms[t].waiting[i], all), {first}, 1);
        buffers[t].sums[0].put(second_[rank], rank, sum);
    }
    queue(rank).finish();
    phases.next(TraceKind::wait, "wait for the sums of others");
    barrier_->arrive(rank, "to add sums " + what);
    phases.next(TraceKind::move, "add up");
    by_first(rank, what, [&] {
        for (std::size_t t = 0; t < terms.size(); ++t) {
            float* const sums = sums_of(self, t);
            const auto count = static_cast<std::uint64_t>(terms[t].mean.shape().numel());
            for (std::size_t q = own_.begin + 1; q < own_.end; ++q)
                for (std::uint64_t i = 0; i < count; ++i) sums[i] += sums_of(q, t)[i];
            group_->allreduce(sums, count, "sums " + what);
            const float factor = 1.0f / static_cast<float>(shards_);
            for (std::uint64_t i = 0; i < count; ++i) sums[i] *= factor;
        }
    });
    phases.next(TraceKind::move, "receive means");
    for (std::size_t t = 0; t < terms.size(); ++t)
        buffers_[own_.begin][group][t].sums[0].get(
            second_[rank], rank, 0,
            part_of(rank, terms[t].mean, {0, terms[t].mean.shape().numel()}));
}

}  // namespace dlprim
