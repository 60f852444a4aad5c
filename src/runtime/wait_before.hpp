// SPDX-License-Identifier: MIT
// WaitBefore: waits for the work before something else, and keeps its error for later.
#pragma once

#include "runtime/queue.hpp"

#include <exception>

namespace dlprim {

/// Waits for the work that is enqueued, so that what it has refused is not taken for a fault of
/// what follows. Its error is thrown by the next wait after this object's end.
class WaitBefore {
  public:
    explicit WaitBefore(Queue& queue) : queue_(queue) {
        try {
            queue_.finish();
        } catch (...) {
            error_ = std::current_exception();
        }
    }
    ~WaitBefore() {
        if (error_) queue_.throw_later(error_);
    }
    WaitBefore(const WaitBefore&) = delete;
    WaitBefore& operator=(const WaitBefore&) = delete;

  private:
    Queue& queue_;
    std::exception_ptr error_;
};

}  // namespace dlprim
