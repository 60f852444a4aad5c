// SPDX-License-Identifier: MIT
// Collectives.
#include "collective/communicator/collectives.hpp"

#include "base/text.hpp"
#include "collective/devices/ordered_sum.hpp"
#include "collective/devices/places.hpp"
#include "collective/devices/second_queue.hpp"

#include <algorithm>
#include <cstring>

namespace dlprim {

namespace {

/// Slices begin at multiples of so many elements, where vectors of kernels are aligned.
constexpr std::int64_t slice_grain = 64;

Queue& queue_of(const Context& context) {
    return Access::impl(context).queue();
}

/// Elements of a tensor to the host; none of an undefined one.
void copy_out(const Tensor& whole, const ElementRange& range, std::byte* to) {
    if (!whole.defined() || range.size() <= 0) return;
    const Tensor part = elements_of(whole.context(), whole, range.begin, range.size());
    queue_of(whole.context()).read(place_of(part), to, part.bytes(), false);
}

void copy_in(const Tensor& whole, const ElementRange& range, const std::byte* from) {
    if (!whole.defined() || range.size() <= 0) return;
    const Tensor part = elements_of(whole.context(), whole, range.begin, range.size());
    queue_of(whole.context()).write(place_of(part), from, part.bytes(), false);
}

/// The tensor as one of a context beside its own.
Tensor seen_by(const Context& context, const Tensor& tensor) {
    return tensor.defined() ? elements_of(context, tensor, 0, tensor.shape().numel()) : tensor;
}

/// What is derived from the contents, such as packed weights, must be made anew. Writes by another
/// context's tensor do not say so.
void note_written(const Tensor& tensor) {
    if (tensor.defined()) Access::buffer(tensor)->touch();
}

std::string line_of(const std::string& note, std::size_t line) {
    const std::vector<std::string> lines = split(note, '\n');
    return line < lines.size() ? lines[line] : note;
}

std::uint64_t bytes_of(const Tensor& tensor) {
    return tensor.defined() ? tensor.bytes() : 0;
}

}  // namespace

Collectives::Cut::Cut(const Tensor& tensor, std::size_t parts, std::uint64_t most)
    : elements(tensor.shape().numel()), size(size_of(tensor.dtype())), ranks(parts) {
    const auto fits = static_cast<std::int64_t>(most / size) / slice_grain * slice_grain;
    chunks = (elements + fits - 1) / fits;
    if (chunks > 0)
        each = std::min(
            fits, ((elements + chunks - 1) / chunks + slice_grain - 1) / slice_grain * slice_grain);
}

ElementRange Collectives::Cut::chunk(std::int64_t index) const {
    return {std::min(elements, index * each), std::min(elements, (index + 1) * each)};
}

ElementRange Collectives::Cut::slice(std::int64_t index, std::size_t rank) const {
    return cut_evenly(chunk(index), rank, ranks, slice_grain);
}

CopyQueues& Collectives::queues(const Context& context) {
    const auto found = opened_.find(context.identity());
    if (found != opened_.end()) return *found->second.queues;
    Opened opened{context, channel_->open(context)};
    return *opened_.emplace(context.identity(), std::move(opened)).first->second.queues;
}

void Collectives::agree(const std::string& call, Deadline deadline) {
    channel_->begin(deadline);
    channel_->write_note(call);
    channel_->end(deadline);
    channel_->begin(deadline);
    const std::string first = channel_->note(0);
    for (std::size_t q = 1; q < channel_->size(); ++q) {
        const std::string other = channel_->note(q);
        if (other == first) continue;
        const std::size_t line = line_of(first, 0) == line_of(other, 0) ? 1 : 0;
        throw Mismatch(cat("the ranks of a group do not make the same call: rank 0 makes ",
                           line_of(first, line), ", rank ", q, " makes ", line_of(other, line)));
    }
}

void Collectives::run(const Context& context, std::int64_t steps, Deadline deadline,
                      const std::function<void(CopyQueues& queues, std::int64_t step)>& work) {
    for (std::int64_t step = 0; step < steps; ++step) {
        channel_->begin(deadline);
        CopyQueues& own = queues(context);
        try {
            work(own, step);
            own.finish();
        } catch (const std::exception&) {
            own.drain();
            throw;
        }
        channel_->end(deadline);
    }
}

void Collectives::barrier(const std::string& call, Deadline deadline) {
    agree(call, deadline);
}

void Collectives::reduce(CopyQueues& queues, std::uint64_t begin, const Tensor& own,
                         const Tensor& out, const RankReduction& reduction) const {
    const std::int64_t count = out.shape().numel();
    if (count == 0) return;
    const auto ranks = static_cast<int>(channel_->size());
    queues.staging.restart();
    std::vector<Tensor> parts;
    for (std::size_t q = 0; q < channel_->size(); ++q) {
        if (q == channel_->rank() && own.defined()) {
            parts.push_back(own);
            continue;
        }
        parts.push_back(queues.staging.take(queues.down, count, out.dtype()));
        copy_in(parts.back(), {0, count}, channel_->chunk(q, channel_->step() + 1) + begin);
    }
    const AddPair combine = [&](const Tensor& left, const Tensor& right,
                                const std::vector<Tensor>& outs,
                                double) { reduction.combine(left, right, outs.front()); };
    OrderedSum sum(ranks, combine, [&](const Tensor& left, bool is_last) {
        return std::vector{is_last ? out : left};
    });
    for (int q = 0; q < ranks; ++q) sum.take({q, 1}, parts[static_cast<std::size_t>(q)]);
    if (ranks == 1 && !are_same(parts[0], out))
        queue_of(queues.down).copy(place_of(parts[0]), place_of(out), out.bytes());
    if (reduction.complete) reduction.complete(out);
}

void Collectives::send_slices(const Cut& cut, std::int64_t index, const Tensor& whole) {
    const std::size_t self = channel_->rank();
    const std::uint32_t now = channel_->step();
    const ElementRange own = cut.slice(index, self);
    for (std::size_t q = 0; q < channel_->size(); ++q) {
        if (q == self) continue;
        const ElementRange slice = cut.slice(index, q);
        std::byte* const place = channel_->chunk(self, now) + cut.offset(index, slice);
        copy_out(whole, slice, place);
        channel_->send(q, place, cut.bytes(slice));
        channel_->receive(q, channel_->chunk(q, now) + cut.offset(index, own), cut.bytes(own));
    }
}

void Collectives::send_result(const Cut& cut, std::int64_t index, const Tensor& whole, int root) {
    const std::size_t self = channel_->rank();
    const std::uint32_t now = channel_->step();
    const ElementRange own = cut.slice(index, self);
    copy_out(whole, own, channel_->result(self, now));
    const auto wants = [&](std::size_t q) {
        return root < 0 || q == static_cast<std::size_t>(root);
    };
    for (std::size_t q = 0; q < channel_->size(); ++q) {
        if (q == self) continue;
        channel_->send(q, channel_->result(self, now), wants(q) ? cut.bytes(own) : 0);
        channel_->receive(q, channel_->result(q, now),
                          wants(self) ? cut.bytes(cut.slice(index, q)) : 0);
    }
}

void Collectives::all_reduce(const Tensor& tensor, const RankReduction& reduction, int root,
                             const std::string& call, Deadline deadline) {
    agree(call, deadline);
    const std::size_t self = channel_->rank();
    const Cut cut(tensor, channel_->size());
    const bool takes = root < 0 || self == static_cast<std::size_t>(root);
    if (takes) note_written(tensor);
    Tensor up, down;
    const auto begin = [&](CopyQueues& queues) {
        up = seen_by(queues.up, tensor);
        if (!takes) {  // what it adds must not change its tensor
            const Tensor own = up;
            up = Tensor(queues.up, own.shape(), own.dtype());
            queue_of(queues.up).copy(place_of(own), place_of(up), own.bytes());
        }
        down = seen_by(queues.down, up);
    };
    const std::int64_t steps = cut.chunks > 0 ? cut.chunks + 3 : 0;
    run(tensor.context(), steps, deadline, [&](CopyQueues& queues, std::int64_t step) {
        if (step == 0) begin(queues);
        if (cut.has(step)) send_slices(cut, step, up);
        if (cut.has(step - 2)) send_result(cut, step - 2, up, root);
        if (cut.has(step - 1)) {
            const ElementRange slice = cut.slice(step - 1, self);
            const Tensor own = elements_of(queues.down, down, slice.begin, slice.size());
            reduce(queues, cut.offset(step - 1, slice), own, own, reduction);
        }
        for (std::size_t q = 0; q < channel_->size() && takes && cut.has(step - 3); ++q)
            if (q != self)
                copy_in(down, cut.slice(step - 3, q), channel_->result(q, channel_->step() + 1));
    });
}

void Collectives::broadcast(const Tensor& tensor, std::size_t root, const std::string& call,
                            Deadline deadline) {
    const bool is_root = channel_->rank() == root;
    std::vector<Tensor> taken(channel_->size());
    if (!is_root) taken[root] = tensor;
    gather(tensor.context(), Cut(tensor, channel_->size()), is_root ? tensor : Tensor(), taken,
           call, deadline);
}

void Collectives::all_gather(const Tensor& own, const std::vector<Tensor>& all,
                             const std::string& call, Deadline deadline) {
    gather(own.context(), Cut(own, channel_->size()), own, all, call, deadline);
}

void Collectives::gather(const Context& context, const Cut& cut, const Tensor& own,
                         const std::vector<Tensor>& all, const std::string& call,
                         Deadline deadline) {
    agree(call, deadline);
    const std::size_t self = channel_->rank();
    for (const Tensor& tensor : all) note_written(tensor);
    Tensor up;
    std::vector<Tensor> down;
    const std::int64_t steps = cut.chunks > 0 ? cut.chunks + 1 : 0;
    run(context, steps, deadline, [&](CopyQueues& queues, std::int64_t step) {
        if (step == 0) {
            up = seen_by(queues.up, own);
            for (const Tensor& tensor : all) down.push_back(seen_by(queues.down, tensor));
        }
        const std::uint32_t now = channel_->step();
        if (cut.has(step)) {
            const ElementRange chunk = cut.chunk(step);
            copy_out(up, chunk, channel_->chunk(self, now));
            for (std::size_t q = 0; q < all.size(); ++q) {
                if (q == self) continue;
                if (own.defined()) channel_->send(q, channel_->chunk(self, now), cut.bytes(chunk));
                if (all[q].defined())
                    channel_->receive(q, channel_->chunk(q, now), cut.bytes(chunk));
            }
        }
        // A rank takes its own part from the buffers, too: it may lie in the result already.
        for (std::size_t q = 0; q < all.size() && cut.has(step - 1); ++q)
            copy_in(down[q], cut.chunk(step - 1), channel_->chunk(q, now + 1));
    });
}

void Collectives::send_parts(
    std::uint64_t most,
    const std::function<std::uint64_t(std::size_t from, std::size_t to)>& bytes) {
    const std::size_t self = channel_->rank();
    const std::uint32_t now = channel_->step();
    for (std::size_t q = 0; q < channel_->size(); ++q) {
        if (q == self) continue;
        channel_->send(q, channel_->chunk(self, now) + q * most, bytes(self, q));
        channel_->receive(q, channel_->chunk(q, now) + self * most, bytes(q, self));
    }
}

void Collectives::reduce_scatter(const std::vector<Tensor>& parts, const Tensor& out,
                                 const RankReduction& reduction, const std::string& call,
                                 Deadline deadline) {
    agree(call, deadline);
    note_written(out);
    const std::size_t self = channel_->rank(), ranks = channel_->size();
    const std::uint64_t most = Channel::chunk_bytes / ranks / slice_grain * slice_grain;
    const Cut cut(out, ranks, most);
    std::vector<Tensor> up;
    Tensor down;
    const std::int64_t steps = cut.chunks > 0 ? cut.chunks + 1 : 0;
    run(out.context(), steps, deadline, [&](CopyQueues& queues, std::int64_t step) {
        if (step == 0) {
            for (const Tensor& part : parts) up.push_back(seen_by(queues.up, part));
            down = seen_by(queues.down, out);
        }
        const std::uint32_t now = channel_->step();
        if (cut.has(step)) {
            const ElementRange chunk = cut.chunk(step);
            for (std::size_t q = 0; q < ranks; ++q)
                copy_out(up[q], chunk, channel_->chunk(self, now) + q * most);
            send_parts(most, [&](std::size_t, std::size_t) { return cut.bytes(chunk); });
        }
        if (!cut.has(step - 1)) return;
        const ElementRange chunk = cut.chunk(step - 1);
        reduce(queues, self * most, {}, elements_of(queues.down, down, chunk.begin, chunk.size()),
               reduction);
    });
}

std::vector<std::vector<std::uint64_t>> Collectives::exchange_sizes(
    const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs, Deadline deadline) {
    const std::size_t self = channel_->rank(), ranks = channel_->size();
    std::vector<std::uint64_t> own;
    own.reserve(inputs.size() + outputs.size());
    for (const Tensor& tensor : inputs) own.push_back(bytes_of(tensor));
    for (const Tensor& tensor : outputs) own.push_back(bytes_of(tensor));
    const std::uint64_t bytes = own.size() * sizeof(std::uint64_t);
    require(bytes <= Channel::chunk_bytes, "a group of ", ranks, " ranks is too large");
    channel_->begin(deadline);
    const std::uint32_t now = channel_->step();
    std::memcpy(channel_->chunk(self, now), own.data(), bytes);
    for (std::size_t q = 0; q < ranks; ++q) {
        if (q == self) continue;
        channel_->send(q, channel_->chunk(self, now), bytes);
        channel_->receive(q, channel_->chunk(q, now), bytes);
    }
    channel_->end(deadline);
    channel_->begin(deadline);
    std::vector<std::vector<std::uint64_t>> all(ranks, own);
    for (std::size_t q = 0; q < ranks; ++q)
        std::memcpy(all[q].data(), channel_->chunk(q, now), bytes);
    for (std::size_t p = 0; p < ranks; ++p)
        for (std::size_t q = 0; q < ranks; ++q)
            if (all[p][q] != all[q][ranks + p])
                throw Mismatch(cat("rank ", p, " sends ", all[p][q], " bytes to rank ", q,
                                   ", which expects ", all[q][ranks + p], " of it"));
    return all;
}

void Collectives::all_to_all(const Context& context, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& outputs, const std::string& call,
                             Deadline deadline) {
    agree(call, deadline);
    const std::size_t self = channel_->rank(), ranks = channel_->size();
    const std::vector<std::vector<std::uint64_t>> sizes = exchange_sizes(inputs, outputs, deadline);
    const std::uint64_t most = Channel::chunk_bytes / ranks / slice_grain * slice_grain;
    std::uint64_t largest = 0;
    for (const std::vector<std::uint64_t>& row : sizes)
        largest = std::max(largest, *std::max_element(row.begin(), row.end()));
    const auto chunks = static_cast<std::int64_t>((largest + most - 1) / most);
    if (chunks == 0) return;
    for (const Tensor& tensor : outputs) note_written(tensor);
    // What of a message of so many bytes goes in a step.
    const auto part = [&](std::uint64_t bytes, std::int64_t step) {
        const std::uint64_t begin = static_cast<std::uint64_t>(step) * most;
        return ElementRange{static_cast<std::int64_t>(std::min(bytes, begin)),
                            static_cast<std::int64_t>(std::min(bytes, begin + most))};
    };
    run(context, chunks + 1, deadline, [&](CopyQueues& queues, std::int64_t step) {
        const std::uint32_t now = channel_->step();
        for (std::size_t q = 0; q < ranks && step < chunks; ++q)
            copy_out(seen_by(queues.up, inputs[q]), part(sizes[self][q], step),
                     channel_->chunk(self, now) + q * most);
        if (step < chunks)
            send_parts(most, [&](std::size_t from, std::size_t to) {
                return static_cast<std::uint64_t>(part(sizes[from][to], step).size());
            });
        for (std::size_t q = 0; q < ranks && step > 0; ++q)
            copy_in(seen_by(queues.down, outputs[q]), part(sizes[q][self], step - 1),
                    channel_->chunk(q, now + 1) + self * most);
    });
}

}  // namespace dlprim
