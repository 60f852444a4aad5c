// SPDX-License-Identifier: MIT
// CommunicationThread: runs jobs one after the other, in the order in which they were pushed.
//
// Collective operations of a process group share a thread, so that all ranks make them in the same
// order. Point-to-point operations have threads of their own, since a send that waits for its
// receiver must not keep a receive from starting.
//
// Threads: any thread may push. The destructor does not wait: a job that runs goes on and jobs
// behind it are cancelled.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace dlprim_torch {

class CommunicationThread {
  public:
    /// Called with true where the thread was stopped before the job could start. Must not throw.
    using Job = std::function<void(bool cancelled)>;

    CommunicationThread();
    ~CommunicationThread();
    CommunicationThread(const CommunicationThread&) = delete;
    CommunicationThread& operator=(const CommunicationThread&) = delete;

    /// A stopped thread cancels the job at once, in the caller's thread.
    void push(Job job);
    /// Cancels the jobs that have not started, and waits for the one that runs, at most this long.
    void stop(std::chrono::milliseconds timeout);

  private:
    friend void stop_communication_threads(std::chrono::milliseconds timeout);
    struct State;
    std::shared_ptr<State> state_;
};

/// Stops all communication threads. Called before the interpreter ends: a thread that lets go of
/// tensors then, which Python knows, would end the process with an error.
void stop_communication_threads(std::chrono::milliseconds timeout);

}  // namespace dlprim_torch
