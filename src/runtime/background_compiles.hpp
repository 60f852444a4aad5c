// SPDX-License-Identifier: MIT
// BackgroundCompiles: processes that stay and compile programs for a context whose driver compiles
// them when they are launched. Eager calls go on meanwhile (runtime/put_off_calls.hpp); plans of
// networks wait (compile_together()).
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
    /// The same for programs that nobody waits for: they come after all others.
    void add_spare(const PendingPrograms& programs);
    /// Whether no process has or will get one of these programs.
    bool are_finished(const PendingPrograms& programs) const;
    /// Waits until no process has or will get one of these programs. What a process has compiled is
    /// in the binary cache then; what it has not, the caller compiles itself.
    void wait_for(const PendingPrograms& programs);
    /// Waits until that is so for one of these programs (at least one), and returns its index, or
    /// nothing after a while.
    std::optional<std::size_t> first_finished(const PendingPrograms& programs);
    /// The same for all programs, also spare ones.
    void wait_for_all();
    /// How many programs processes have or will get, without spare ones.
    std::size_t unfinished() const;

  private:
    bool is_finished(const std::shared_ptr<const PendingProgram>& program) const {
        return stop_ || unfinished_.count(program.get()) == 0;
    }
    void add_to(std::deque<std::shared_ptr<const PendingProgram>>& list,
                const PendingPrograms& programs);
    void start_threads();
    void work();
    bool has_process(std::optional<CompileProcess>& process, const CompileTarget& target);
    void compile(std::optional<CompileProcess>& process, const PendingProgram& program);

    const CompileCrew crew_;
    mutable std::mutex mutex_;  ///< protects what follows
    std::condition_variable added_, finished_;
    std::deque<std::shared_ptr<const PendingProgram>> waiting_, spare_;
    std::set<const PendingProgram*> unfinished_;  ///< those, and what processes have now
    std::vector<std::thread> threads_;            ///< one for each process
    std::atomic<bool> stop_{false};
    std::atomic<int> failed_starts_{0};
};

}  // namespace dlprim
