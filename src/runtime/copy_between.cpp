// SPDX-License-Identifier: MIT
// copy_between: pieces through two pinned slots, so that one is read while the other is written.
#include "runtime/copy_between.hpp"

#include "runtime/event_impl.hpp"

#include <algorithm>

namespace dlprim {

namespace {

constexpr std::uint64_t most_piece = 8 << 20;

/// Where a piece is on its way.
struct Slot {
    std::shared_ptr<std::byte> memory;
    std::shared_ptr<EventImpl> written;  ///< the copy to the target is done
};

}  // namespace

void copy_between(ContextImpl& source, const BufferRef& from, ContextImpl& target,
                  const BufferRef& to, std::uint64_t bytes) {
    if (bytes == 0) return;
    if (&source == &target) return source.queue().copy(from, to, bytes);
    if (target.is_host()) return source.queue().read(from, to.host(), bytes, true);
    if (source.is_host()) return target.queue().write(to, from.host(), bytes, true);
    Slot slots[2];
    const std::uint64_t piece = std::min(bytes, most_piece);
    // The slots are freed before an exception leaves only when the device no longer uses them.
    struct Ends {
        Slot (&slots)[2];
        ~Ends() {
            for (const Slot& slot : slots)
                if (slot.written) try {
                        slot.written->wait();
                    } catch (const Error&) {
                        // The caller gets the first error.
                    }
        }
    } ends{slots};
    for (std::uint64_t at = 0, n = 0; at < bytes; at += piece, ++n) {
        Slot& slot = slots[n % 2];
        if (!slot.memory) slot.memory = source.make_pinned(piece);
        if (slot.written) slot.written->wait();
        const std::uint64_t size = std::min(piece, bytes - at);
        source.queue().read({from.buffer, from.byte_offset + at}, slot.memory.get(), size, true);
        target.queue().write({to.buffer, to.byte_offset + at}, slot.memory.get(), size, false);
        slot.written = target.record({});
    }
    for (Slot& slot : slots)
        if (slot.written) slot.written->wait();
}

}  // namespace dlprim
