// SPDX-License-Identifier: MIT
// HostMoves.
#include "collective/hosts/host_moves.hpp"

#include "base/text.hpp"
#include "collective/devices/places.hpp"
#include "collective/devices/second_queue.hpp"

#include <algorithm>

namespace dlprim {

namespace {

/// Slices begin at multiples of so many elements, where vectors of kernels are aligned.
constexpr std::int64_t slice_grain = 64;

Queue& queue_of(const Context& context) {
    return Access::impl(context).queue();
}

/// Elements of a tensor to the host.
void copy_out(const Tensor& whole, std::int64_t begin, std::int64_t end, std::byte* to) {
    if (begin == end) return;
    const Tensor part = elements_of(whole.context(), whole, begin, end - begin);
    queue_of(whole.context()).read(place_of(part), to, part.bytes(), false);
}

void copy_in(const Tensor& whole, std::int64_t begin, std::int64_t end, const std::byte* from) {
    if (begin == end) return;
    const Tensor part = elements_of(whole.context(), whole, begin, end - begin);
    queue_of(whole.context()).write(place_of(part), from, part.bytes(), false);
}

/// The tensor as one of a context beside its own.
Tensor seen_by(const Context& context, const Tensor& tensor) {
    return elements_of(context, tensor, 0, tensor.shape().numel());
}

/// What is derived from the contents, such as packed weights, must be made anew. Writes by another
/// context's tensor do not say so.
void note_written(const Tensor& tensor) {
    Access::buffer(tensor)->touch();
}

}  // namespace

HostMoves::Cut::Cut(const Tensor& tensor, std::size_t parts)
    : elements(tensor.shape().numel()), size(size_of(tensor.dtype())), processes(parts) {
    const auto most = static_cast<std::int64_t>(HostRooms::chunk_bytes / size);
    chunks = (elements + most - 1) / most;
    if (chunks > 0)
        each = std::min(
            most, ((elements + chunks - 1) / chunks + slice_grain - 1) / slice_grain * slice_grain);
}

HostMoves::Range HostMoves::Cut::chunk(std::int64_t index) const {
    return {std::min(elements, index * each), std::min(elements, (index + 1) * each)};
}

HostMoves::Range HostMoves::Cut::slice(std::int64_t index, std::size_t process) const {
    const Range whole = chunk(index);
    const std::int64_t grains = (whole.size() + slice_grain - 1) / slice_grain;
    const auto border = [&](std::size_t q) {
        const std::int64_t before = grains * static_cast<std::int64_t>(q) /
                                    static_cast<std::int64_t>(processes) * slice_grain;
        return std::min(whole.end, whole.begin + before);
    };
    return {border(process), border(process + 1)};
}

void HostMoves::run(const Context& context, std::int64_t steps, const std::string& call,
                    Deadline deadline,
                    const std::function<void(HostSide& side, std::int64_t step)>& work) {
    for (std::int64_t step = 0; step < steps; ++step) {
        board_.begin(deadline);
        if (step == 0) board_.write_note(call);
        if (step == 1) compare_notes();
        HostSide& side = rooms_.side(context, board_.step());
        try {
            work(side, step);
            side.finish();
        } catch (const std::exception&) {
            side.drain();
            throw;
        }
        board_.end();
    }
}

void HostMoves::compare_notes() const {
    for (std::size_t q = 0; q < board_.size(); ++q)
        for (std::size_t p = 0; p < q; ++p)
            if (board_.note(p) != board_.note(q))
                throw Mismatch(cat("the processes of a group do not make the same call: rank ", p,
                                   " makes ", board_.note(p), ", rank ", q, " makes ",
                                   board_.note(q)));
}

void HostMoves::all_reduce(const Tensor& tensor, const HostReduction& reduction,
                           const std::string& call, Deadline deadline) {
    const Cut cut(tensor, board_.size());
    const std::size_t self = board_.rank();
    note_written(tensor);
    Tensor up, down;
    run(tensor.context(), cut.chunks + 3, call, deadline, [&](HostSide& side, std::int64_t step) {
        if (step == 0 && cut.has(0)) {
            up = seen_by(side.up, tensor);
            down = seen_by(side.down, tensor);
        }
        const std::uint32_t now = board_.step(), before = now + 1;
        for (std::size_t q = 0; q < board_.size() && cut.has(step); ++q) {
            const Range slice = cut.slice(step, q);
            if (q != self)
                copy_out(up, slice.begin, slice.end,
                         rooms_.sent(self, now) + cut.offset(step, slice));
        }
        if (cut.has(step - 2)) {
            const Range slice = cut.slice(step - 2, self);
            copy_out(up, slice.begin, slice.end, rooms_.reduced(self, now));
        }
        if (cut.has(step - 1)) reduce(side, cut, step - 1, down, reduction);
        for (std::size_t q = 0; q < board_.size() && cut.has(step - 3); ++q) {
            const Range slice = cut.slice(step - 3, q);
            if (q != self) copy_in(down, slice.begin, slice.end, rooms_.reduced(q, before));
        }
    });
}

void HostMoves::reduce(HostSide& side, const Cut& cut, std::int64_t index, const Tensor& whole,
                       const HostReduction& reduction) const {
    const std::size_t self = board_.rank(), processes = board_.size();
    const Range slice = cut.slice(index, self);
    if (slice.size() == 0) return;
    const Tensor own = elements_of(side.down, whole, slice.begin, slice.size());
    const Tensor staging =
        side.stage(slice.size() * static_cast<std::int64_t>(processes - 1), whole.dtype());
    std::vector<Tensor> parts;
    std::int64_t next = 0;
    for (std::size_t q = 0; q < processes; ++q) {
        if (q == self) {
            parts.push_back(own);
            continue;
        }
        copy_in(staging, next, next + slice.size(),
                rooms_.sent(q, board_.step() + 1) + cut.offset(index, slice));
        parts.push_back(elements_of(side.down, staging, next, slice.size()));
        next += slice.size();
    }
    for (std::size_t step = 1; step < processes; step *= 2)
        for (std::size_t q = 0; q + step < processes; q += 2 * step)
            reduction.combine(parts[q], parts[q + step], 2 * step >= processes ? own : parts[q]);
    if (reduction.complete) reduction.complete(own);
}

void HostMoves::broadcast(const Tensor& tensor, std::size_t root, const std::string& call,
                          Deadline deadline) {
    const Cut cut(tensor, board_.size());
    const bool sends = board_.rank() == root;
    if (!sends) note_written(tensor);
    Tensor seen;
    const auto steps = std::max<std::int64_t>(cut.chunks + 1, 2);
    run(tensor.context(), steps, call, deadline, [&](HostSide& side, std::int64_t step) {
        if (step == 0 && cut.has(0)) seen = seen_by(sends ? side.up : side.down, tensor);
        const std::int64_t index = sends ? step : step - 1;
        if (!cut.has(index)) return;
        const Range chunk = cut.chunk(index);
        if (sends)
            copy_out(seen, chunk.begin, chunk.end, rooms_.sent(root, board_.step()));
        else
            copy_in(seen, chunk.begin, chunk.end, rooms_.sent(root, board_.step() + 1));
    });
}

void HostMoves::all_gather(const Tensor& own, const std::vector<Tensor>& all,
                           const std::string& call, Deadline deadline) {
    const Cut cut(own, board_.size());
    const std::size_t self = board_.rank();
    for (const Tensor& tensor : all) note_written(tensor);
    Tensor up;
    std::vector<Tensor> down;
    const auto steps = std::max<std::int64_t>(cut.chunks + 1, 2);
    run(own.context(), steps, call, deadline, [&](HostSide& side, std::int64_t step) {
        if (step == 0 && cut.has(0)) {
            up = seen_by(side.up, own);
            for (const Tensor& tensor : all) down.push_back(seen_by(side.down, tensor));
        }
        if (cut.has(step)) {
            const Range chunk = cut.chunk(step);
            copy_out(up, chunk.begin, chunk.end, rooms_.sent(self, board_.step()));
        }
        // A process takes its own part from shared memory, too: it may lie in the result already.
        if (!cut.has(step - 1)) return;
        const Range chunk = cut.chunk(step - 1);
        for (std::size_t q = 0; q < all.size(); ++q)
            copy_in(down[q], chunk.begin, chunk.end, rooms_.sent(q, board_.step() + 1));
    });
}

}  // namespace dlprim
