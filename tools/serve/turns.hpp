// SPDX-License-Identifier: MIT
// Turns: requests for embeddings, which are answered one after the other in the order in which they
// arrive.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace dlprim::tools {

class Turns {
  public:
    /// At most `waiting` requests wait or run at a time.
    explicit Turns(std::int64_t waiting) : most_(waiting) {}

    /// A place in the queue. One that is refused, because the queue is full or has been closed,
    /// is no place.
    class Place {
      public:
        explicit Place(Turns& turns) : turns_(turns), number_(turns.enter()) {}
        ~Place() {
            if (number_ >= 0) turns_.leave(number_);
        }
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;

        explicit operator bool() const { return number_ >= 0; }
        /// Waits until all before have left. Returns whether the queue is still open.
        bool wait() { return turns_.wait(number_); }

      private:
        Turns& turns_;
        std::int64_t number_;
    };

    /// No request gets a turn from now on.
    void close() {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        changed_.notify_all();
    }

  private:
    std::int64_t enter() {
        const std::lock_guard lock(mutex_);
        if (closed_ || next_ - first_ >= most_) return -1;
        return next_++;
    }
    bool wait(std::int64_t number) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return closed_ || number == first_; });
        return !closed_;
    }
    /// A place that gives up without its turn waits for it, so that none is passed over.
    void leave(std::int64_t number) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return number == first_; });
        ++first_;
        changed_.notify_all();
    }

    const std::int64_t most_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::int64_t first_ = 0, next_ = 0;  ///< numbers: whose turn it is, and of the next to come
    bool closed_ = false;
};

}  // namespace dlprim::tools
