// SPDX-License-Identifier: MIT
// Mover: a thread that does jobs beside the one that posts them: it moves a rank's data while the
// rank's own thread enqueues work, or is itself the thread of a rank.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

namespace dlprim {

class Mover {
  public:
    /// `patience`: how long a job may take before wait() and the destructor leave it behind.
    /// `spin`: how long wait() spins once the last job has said that it is about to end.
    /// `idle_spin`: how long the thread spins for the next job before it sleeps.
    explicit Mover(std::chrono::duration<double> patience, std::chrono::microseconds spin = {},
                   std::chrono::microseconds idle_spin = {});
    /// Drops jobs that have not begun, and waits for the one that runs, unless wait() has done so
    /// in vain. A job may let go what owns this object.
    ~Mover();
    Mover(const Mover&) = delete;
    Mover& operator=(const Mover&) = delete;

    /// Jobs run in the order in which they are posted. They keep what they use, since a job that
    /// hangs outlives this object. After one has thrown, others are dropped until wait().
    void post(std::function<void()> job);
    /// For the last job, when it is about to end: wakes wait(), which then spins until it has
    /// ended.
    void announce_end();
    /// Waits until all jobs have ended, and throws what the first of them has thrown. Throws
    /// Error(device) if none has ended within the patience.
    void wait();
    /// Waits until all jobs have ended, and spins at first. Returns false if they have not within
    /// so long.
    bool ends_within(std::chrono::duration<double> most);

  private:
    struct State;
    static void serve(const std::shared_ptr<State>& state);

    std::shared_ptr<State> state_;
    std::chrono::duration<double> patience_;
    std::chrono::microseconds spin_;
    bool waited_ = false;  ///< in vain, for a job that has not ended
    std::thread thread_;
};

}  // namespace dlprim
