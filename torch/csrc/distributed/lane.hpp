// SPDX-License-Identifier: MIT
// A lane: a thread that runs jobs one after the other, in the order in which they were pushed.
//
// Collective operations of a process group share a lane, so that all ranks make them in the same
// order. Point-to-point operations have lanes of their own, since a send that waits for its
// receiver must not keep a receive from starting.
//
// Threads: any thread may push. The destructor does not wait: a job that runs goes on and jobs
// behind it are cancelled.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace dlprim_torch {

class Lane {
  public:
    /// Called with true where the lane was stopped before the job could start. Must not throw.
    using Job = std::function<void(bool cancelled)>;

    Lane();
    ~Lane();
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    /// A lane that was stopped cancels the job at once, in the caller's thread.
    void push(Job job);
    /// Cancels the jobs that have not started, and waits for the one that runs, at most this long.
    void stop(std::chrono::milliseconds patience);

  private:
    friend void stop_lanes(std::chrono::milliseconds patience);
    struct State;
    std::shared_ptr<State> state_;
};

/// Stops all lanes. Called before the interpreter ends: a thread that lets go of tensors then,
/// which Python knows, would end the process with an error.
void stop_lanes(std::chrono::milliseconds patience);

}  // namespace dlprim_torch
