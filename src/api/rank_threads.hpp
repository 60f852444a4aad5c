// SPDX-License-Identifier: MIT
// RankThreads: a thread for each rank of a team but the first, whose work the calling thread does.
// Waiting threads spin before they sleep, as long as the barrier's spin() says.
#pragma once

#include "collective/devices/barrier.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace dlprim {

/// How long a device may compile after the first one has done so.
constexpr std::chrono::duration<double> compiling{3600};

class RankThreads {
  public:
    explicit RankThreads(std::shared_ptr<Barrier> barrier);
    /// Waits for threads that work, up to the barrier's deadline, unless run() has done so in vain.
    /// Later they are left behind.
    ~RankThreads();
    RankThreads(const RankThreads&) = delete;
    RankThreads& operator=(const RankThreads&) = delete;

    /// Calls work(rank) on all threads at once. If one throws, the barrier fails with its name, and
    /// that is thrown when all have ended. A thread that has not ended `deadline` after the first
    /// rank is left behind, likewise with its name, and no other work can be done.
    void run(const std::function<void(std::size_t)>& work, std::chrono::duration<double> deadline);

  private:
    /// What a thread shares with the team, and keeps if it is left behind.
    struct State {
        std::shared_ptr<Barrier> barrier;
        std::mutex mutex;
        std::condition_variable changed;
        std::function<void(std::size_t)> work;
        std::atomic<std::size_t> generation{0}, busy{0};  ///< changed with the mutex
        std::vector<bool> working;                        ///< by rank: which are busy
        bool ends = false;
        std::exception_ptr thrown;  ///< by a function of the caller, if it is no Error
    };
    static void serve(const std::shared_ptr<State>& state, std::size_t rank);
    static void call(State& state, const std::function<void(std::size_t)>& work, std::size_t rank);
    bool wait(std::chrono::duration<double> deadline);

    std::shared_ptr<State> state_;
    std::vector<std::thread> threads_;
    bool waited_ = false;  ///< in vain, for a thread that has not ended its work
};

}  // namespace dlprim
