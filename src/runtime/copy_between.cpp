// SPDX-License-Identifier: MIT
// copy_between: pieces through two pinned slots, so that one is read while the other is written.
#include "runtime/copy_between.hpp"

#include "runtime/event_impl.hpp"

#include <algorithm>

namespace dlprim {

namespace {

constexpr std::uint64_t most_piece = 8 << 20;

// The host waits for events and not in blocking copies: with Intel's CPU runtime a blocking copy of
// a second queue returns before others find its values.

void read_now(ContextImpl& source, const BufferRef& from, void* to, std::uint64_t bytes) {
    source.queue().read(from, to, bytes, false);
    source.record({.looks = true})->wait();
}

void write_now(ContextImpl& target, const BufferRef& to, const void* from, std::uint64_t bytes) {
    target.queue().write(to, from, bytes, false);
    target.record({})->wait();
}

/// The copies of slots to the target.
struct Written {
    std::shared_ptr<EventImpl> events[2];
    /// Before an exception leaves, the device must no longer use the slots.
    ~Written() {
        for (const auto& event : events)
            if (event) try {
                    event->wait();
                } catch (const Error&) {
                    // The caller gets the first error.
                }
    }
};

}  // namespace

void CopyStage::copy(ContextImpl& source, const BufferRef& from, ContextImpl& target,
                     const BufferRef& to, std::uint64_t bytes) {
    if (bytes == 0) return;
    if (&source == &target) return source.queue().copy(from, to, bytes);
    if (target.is_host()) return read_now(source, from, to.host(), bytes);
    if (source.is_host()) return write_now(target, to, from.host(), bytes);
    const std::uint64_t piece = std::min(bytes, most_piece);
    if (piece_ < piece) {
        slots_ = {};
        piece_ = piece;
    }
    Written written;
    for (std::uint64_t at = 0, n = 0; at < bytes; at += piece, ++n) {
        std::shared_ptr<std::byte>& slot = slots_[n % 2];
        std::shared_ptr<EventImpl>& event = written.events[n % 2];
        if (!slot) slot = source.make_pinned(piece_);
        if (event) event->wait();
        const std::uint64_t size = std::min(piece, bytes - at);
        read_now(source, {from.buffer, from.byte_offset + at}, slot.get(), size);
        target.queue().write({to.buffer, to.byte_offset + at}, slot.get(), size, false);
        event = target.record({});
    }
    for (const auto& event : written.events)
        if (event) event->wait();
}

void copy_between(ContextImpl& source, const BufferRef& from, ContextImpl& target,
                  const BufferRef& to, std::uint64_t bytes) {
    CopyStage().copy(source, from, target, to, bytes);
}

}  // namespace dlprim
