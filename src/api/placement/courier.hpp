// SPDX-License-Identifier: MIT
// Courier: moves tensors from one device to another while both compute. It has a thread and a
// second queue on each device (collective/devices/second_queue.hpp), and pinned memory of the host
// between them.
#pragma once

#include "api/placement/placed_trace.hpp"
#include "collective/devices/mover.hpp"
#include "runtime/event_impl.hpp"

#include <dlprim/context.hpp>
#include <dlprim/tensor.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>

namespace dlprim {

class Courier {
  public:
    /// `patience` as for Mover.
    Courier(const Context& from, const Context& to, std::chrono::duration<double> patience);

    /// Moves `source` to `target` after the event `ready`, which is the source's, the event
    /// `unused`, which is the target's (null where nothing has used it), and the moves that were
    /// posted before. `done` is called by the courier's thread: without an exception, what is
    /// enqueued on the target's device from then on finds the values.
    void post(const Tensor& source, const Tensor& target, std::shared_ptr<EventImpl> ready,
              std::shared_ptr<EventImpl> unused, TracedMove traced,
              std::function<void(std::exception_ptr)> done);
    /// Waits until all moves are over.
    void wait() { mover_.wait(); }

  private:
    struct Ways;
    std::shared_ptr<Ways> ways_;
    Mover mover_;
};

}  // namespace dlprim
