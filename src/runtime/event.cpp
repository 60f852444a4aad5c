// SPDX-License-Identifier: MIT
// Event and PinnedMemory: the public interface of what contexts make.
#include <dlprim/event.hpp>
#include <dlprim/pinned.hpp>

#include "base/text.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/event_impl.hpp"

#include <algorithm>

namespace dlprim {

Event::Event(const Context& context, bool timed)
    : impl_(Access::impl(context).record({.timed = timed})) {}

bool Event::done() const {
    return impl_ == nullptr || impl_->done();
}

void Event::wait() const {
    if (impl_ != nullptr) impl_->wait();
}

void Event::order(const Context& later) const {
    if (impl_ != nullptr) impl_->order(Access::impl(later));
}

double Event::elapsed_ms(const Event& start) const {
    const std::uint64_t from = start.impl_ == nullptr ? 0 : start.impl_->time_ns();
    const std::uint64_t to = impl_ == nullptr ? 0 : impl_->time_ns();
    require(from != 0 && to != 0,
            "the time between two events is only known if both were recorded with timing: "
            "Event(context, true)");
    return (static_cast<double>(to) - static_cast<double>(from)) * 1e-6;
}

PinnedMemory::PinnedMemory(const Context& context, std::uint64_t bytes)
    : data_(Access::impl(context).make_pinned(std::max<std::uint64_t>(bytes, 1))), bytes_(bytes) {}

}  // namespace dlprim
