// SPDX-License-Identifier: MIT
// BackgroundCompiles: processes that compile programs while the program that needs them goes on.
// compile_by_processes() (runtime/compile_ahead.hpp) is for callers that wait.
#pragma once

#include "runtime/compile_ahead.hpp"
#include "runtime/program_builds.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

namespace dlprim {

/// Any thread may call any member.
class BackgroundCompiles {
  public:
    explicit BackgroundCompiles(CompileCrew crew) : crew_(std::move(crew)) {}
    /// Ends the processes, also in the middle of a program.
    ~BackgroundCompiles();
    BackgroundCompiles(const BackgroundCompiles&) = delete;
    BackgroundCompiles& operator=(const BackgroundCompiles&) = delete;

    /// Gives programs that are not compiled to the processes, the first ones first. Does not wait.
    void add(const PendingPrograms& programs);
    /// Waits until no process has or will get one of these programs. What a process has compiled is
    /// in the binary cache then; what it has not, the caller compiles itself.
    void wait_for(const PendingPrograms& programs);
    /// How many programs processes have or will get.
    std::size_t unfinished() const;

  private:
    void start_threads();
    void work();
    void compile(std::optional<CompileProcess>& process, const PendingProgram& program);

    const CompileCrew crew_;
    mutable std::mutex mutex_;  ///< protects what follows
    std::condition_variable added_, finished_;
    std::deque<std::shared_ptr<const PendingProgram>> waiting_;
    std::set<const PendingProgram*> unfinished_;  ///< those, and what processes have now
    std::vector<std::thread> threads_;            ///< one for each process
    std::atomic<bool> stop_{false};
    std::atomic<int> failed_starts_{0};
};

}  // namespace dlprim
