// SPDX-License-Identifier: MIT
// RankThreads: a thread for each rank of a team but the first, whose work the calling thread does.
// Waiting threads spin before they sleep, as long as the barrier's spin() says.
#pragma once

#include "collective/devices/barrier.hpp"
#include "collective/devices/mover.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace dlprim {

/// How long a device may compile after the first one has done so.
constexpr std::chrono::duration<double> compiling{3600};

class RankThreads {
  public:
    /// Its destructor waits for threads that work, each up to the barrier's deadline, unless run()
    /// has done so in vain. Later they are left behind.
    explicit RankThreads(std::shared_ptr<Barrier> barrier);

    /// Calls work(rank) on all threads at once. If one throws, the barrier fails with its name, and
    /// that is thrown when all have ended. A thread that has not ended `deadline` after the first
    /// rank is left behind, likewise with its name, and no other work can be done.
    void run(const std::function<void(std::size_t)>& work, std::chrono::duration<double> deadline);

  private:
    struct State;
    std::shared_ptr<State> state_;
    std::vector<std::unique_ptr<Mover>> threads_;  ///< of the ranks from 1 on
};

}  // namespace dlprim
