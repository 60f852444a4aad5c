// SPDX-License-Identifier: MIT
// compile_together: compiles a plan's programs on several threads, or by other processes.
#include "runtime/program_builds.hpp"

#include "runtime/compile_ahead.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>
#include <system_error>
#include <thread>

namespace dlprim {

thread_local NotedBuilds* NotedBuilds::innermost_ = nullptr;

namespace {

/// The programs that are left to compile, shared by the threads. Each index is taken by one thread,
/// and only that thread writes the error of the index.
class Worklist {
  public:
    explicit Worklist(const PendingPrograms& programs)
        : programs_(programs), order_(programs.size()), errors_(programs.size()) {
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        // A long compilation that begins last would keep all other threads waiting.
        std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
            return programs[a]->text().source.size() > programs[b]->text().source.size();
        });
    }

    /// Compiles until nothing is left. `begins` is the function that compile_together() takes.
    void work(const std::function<void(std::size_t, std::size_t)>& begins) {
        for (;;) {
            const std::size_t drawn = next_.fetch_add(1, std::memory_order_relaxed);
            if (drawn >= order_.size()) return;
            const std::size_t index = order_[drawn];
            if (begins) begins(done_.load(std::memory_order_relaxed), index);
            try {
                programs_[index]->compile_now();
            } catch (...) {
                errors_[index] = std::current_exception();
            }
            done_.fetch_add(1, std::memory_order_relaxed);
        }
    }
    /// Makes every thread end after the program that it is compiling.
    void stop() { next_.store(order_.size(), std::memory_order_relaxed); }
    std::vector<std::exception_ptr> take_errors() { return std::move(errors_); }

  private:
    const PendingPrograms& programs_;
    std::vector<std::size_t> order_;
    std::vector<std::exception_ptr> errors_;
    std::atomic<std::size_t> next_{0}, done_{0};
};

/// Threads that take programs from a worklist. The destructor waits until they have ended.
class Helpers {
  public:
    Helpers(Worklist& work, int count) : work_(work) {
        try {
            const bool untold = UntoldWaits::active();
            for (int i = 0; i < count; ++i)
                threads_.emplace_back([&work, untold] {
                    std::optional<UntoldWaits> as_caller;
                    if (untold) as_caller.emplace();
                    work.work({});
                });
        } catch (const std::system_error&) {
            // Fewer threads were started than wanted. The calling thread compiles what they leave.
        }
    }
    ~Helpers() {
        work_.stop();  // in case the calling thread has thrown
        join();
    }
    Helpers(const Helpers&) = delete;
    Helpers& operator=(const Helpers&) = delete;
    void join() {
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
    }

  private:
    Worklist& work_;
    std::vector<std::thread> threads_;
};

}  // namespace

std::vector<std::exception_ptr> compile_together(
    const PendingPrograms& programs, int threads,
    const std::function<void(std::size_t, std::size_t)>& wanted) {
    if (programs.empty()) return {};
    const WaitingForCompiler waiting(static_cast<int>(programs.size()));
    const auto begins = [&](std::size_t done, std::size_t next) {
        waiting.at(static_cast<int>(done));
        if (wanted) wanted(done, next);
    };
    if (const auto crew = crew_for(programs, threads)) {
        if (BackgroundCompiles* const background = background_for(programs))
            return compile_in_background(programs, *background, begins);
        return compile_by_processes(programs, *crew, begins);
    }
    Worklist work(programs);
    Helpers helpers(work, std::min(threads, static_cast<int>(programs.size())) - 1);
    work.work(begins);
    helpers.join();
    return work.take_errors();
}

}  // namespace dlprim
