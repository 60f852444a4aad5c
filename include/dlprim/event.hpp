// SPDX-License-Identifier: MIT
// Event: a point in the work of a context. It is done when everything that the library had enqueued
// there before is done.
//
//   const dp::Event copied = x.copy_to_host_async(data, x.bytes());
//   ...                                        // the host works on
//   copied.wait();                             // now `data` holds the values
//
// Ownership: an Event is a cheap handle whose copies mean the same point. It keeps the device open.
//
// Threads: any thread may call any const member of one Event at the same time.
//
// On the host, where work is done when a call returns, every Event is done from the start.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/internal.hpp>
#include <dlprim/namespace.hpp>

#include <memory>
#include <utility>

namespace dlprim {

class Event {
  public:
    /// An empty event, which is done.
    Event() = default;
    /// A point behind all work that the library has enqueued on the context so far. Hands that work
    /// to the device and does not wait. With `timed`, elapsed_ms() may be asked of it.
    explicit Event(const Context& context, bool timed = false);

    /// Whether it marks a point; false for a default-made Event.
    bool defined() const noexcept { return impl_ != nullptr; }
    /// Whether the device has reached the point. Does not wait.
    bool done() const;
    /// Waits until the device has reached the point, not for what was enqueued later. Of an event
    /// that Tensor::copy_to_host_async() returned: throws Error(invalid_argument) if a kernel in
    /// front of it found an index out of range, as Context::finish() does.
    void wait() const;
    /// Makes the work that is enqueued on `later` from now on begin after this point. Waits only
    /// where the two contexts have different cl_contexts.
    void order(const Context& later) const;
    /// Milliseconds from the point of `start` to this one. Waits for both. Where the context's
    /// queue has no profiling, these are the times at which the driver told the host, some 10 us
    /// late. Throws Error(invalid_argument) unless both were made with `timed`.
    double elapsed_ms(const Event& start) const;

  private:
    friend class internal::Access;
    explicit Event(std::shared_ptr<EventImpl> impl) : impl_(std::move(impl)) {}
    std::shared_ptr<EventImpl> impl_;
};

}  // namespace dlprim
