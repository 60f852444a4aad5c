// SPDX-License-Identifier: MIT
// EventImpl: a point in the work of one context, behind dlprim/event.hpp.
#pragma once

#include <cstdint>

namespace dlprim {

class ContextImpl;

class EventImpl {
  public:
    virtual ~EventImpl() = default;
    virtual bool done() = 0;
    virtual void wait() = 0;
    /// Makes later work of `later` begin after the point.
    virtual void order(ContextImpl& later) = 0;
    /// When the device reached the point, in nanoseconds of some clock of its context. Waits. 0 if
    /// the event is not timed.
    virtual std::uint64_t time_ns() = 0;
};

}  // namespace dlprim
