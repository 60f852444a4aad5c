// SPDX-License-Identifier: MIT
// BackgroundCompiles: each process has a thread here that gives it one program after another.
#include "runtime/background_compiles.hpp"

#include "base/text.hpp"
#include "runtime/expected_launches.hpp"
#include "runtime/without_signals.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>

namespace dlprim {
namespace {

/// A process that has nothing to do for so long is ended. The next one takes half a second longer
/// for its first program.
constexpr std::chrono::seconds idle{5};
constexpr int most_failed_starts = 3;

}  // namespace

BackgroundCompiles::~BackgroundCompiles() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    added_.notify_all();
    finished_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void BackgroundCompiles::add(const PendingPrograms& programs) {
    const std::lock_guard lock(mutex_);
    for (const auto& program : programs) {  // somebody waits for it from now on
        const auto found = std::find(spare_.begin(), spare_.end(), program);
        if (found == spare_.end()) continue;
        spare_.erase(found);
        unfinished_.erase(program.get());
    }
    add_to(waiting_, programs);
}

void BackgroundCompiles::add_spare(const PendingPrograms& programs) {
    const std::lock_guard lock(mutex_);
    add_to(spare_, programs);
}

void BackgroundCompiles::add_to(std::deque<std::shared_ptr<const PendingProgram>>& list,
                                const PendingPrograms& programs) {
    for (const auto& program : programs) {
        if (program->compiled() || !unfinished_.insert(program.get()).second) continue;
        list.push_back(program);
        added_.notify_one();
    }
    if (!list.empty()) start_threads();
}

bool BackgroundCompiles::are_finished(const PendingPrograms& programs) const {
    const std::lock_guard lock(mutex_);
    return std::all_of(programs.begin(), programs.end(),
                       [&](const auto& program) { return is_finished(program); });
}

void BackgroundCompiles::start_threads() {
    try {
        while (threads_.size() < static_cast<std::size_t>(crew_.processes))
            threads_.push_back(without_signals([this] { work(); }));
    } catch (const std::system_error&) {
        if (!threads_.empty()) return;  // there are fewer processes then
        waiting_.clear();
        spare_.clear();
        unfinished_.clear();
    }
}

void BackgroundCompiles::wait_for(const PendingPrograms& programs) {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] {
        return std::all_of(programs.begin(), programs.end(),
                           [&](const auto& program) { return is_finished(program); });
    });
}

void BackgroundCompiles::wait_for_all() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return stop_ || unfinished_.empty(); });
}

std::optional<std::size_t> BackgroundCompiles::first_finished(const PendingPrograms& programs) {
    constexpr std::chrono::milliseconds a_while{100};
    std::unique_lock lock(mutex_);
    auto found = programs.end();
    const bool any = finished_.wait_for(lock, a_while, [&] {
        found = std::find_if(programs.begin(), programs.end(),
                             [&](const auto& program) { return is_finished(program); });
        return found != programs.end();
    });
    if (!any) return std::nullopt;
    return static_cast<std::size_t>(found - programs.begin());
}

std::size_t BackgroundCompiles::unfinished() const {
    const std::lock_guard lock(mutex_);
    return unfinished_.size() - spare_.size();
}

void BackgroundCompiles::work() {
    const UntoldWaits untold;
    std::optional<CompileProcess> process;
    const auto has_work = [this] { return stop_ || !waiting_.empty() || !spare_.empty(); };
    std::unique_lock lock(mutex_);
    for (;;) {
        if (!added_.wait_for(lock, idle, has_work)) {
            lock.unlock();
            process.reset();
            lock.lock();
            added_.wait(lock, has_work);
        }
        if (stop_) return;
        auto& list = waiting_.empty() ? spare_ : waiting_;
        const auto program = std::move(list.front());
        list.pop_front();
        lock.unlock();
        try {
            compile(process, *program);
        } catch (const std::exception& error) {
            log(LogLevel::debug, cat("a program is not compiled ahead: ", error.what()));
        }
        lock.lock();
        unfinished_.erase(program.get());
        finished_.notify_all();
    }
}

/// Starts the process unless it is there. Returns false if that fails.
bool BackgroundCompiles::has_process(std::optional<CompileProcess>& process,
                                     const CompileTarget& target) {
    if (process) return true;
    if (failed_starts_ >= most_failed_starts) return false;
    process.emplace(crew_.executable, target, stop_, crew_.patience);
    if (process->ready()) return true;
    ++failed_starts_;
    process.reset();
    return false;
}

void BackgroundCompiles::compile(std::optional<CompileProcess>& process,
                                 const PendingProgram& program) {
    const CompileTarget* const target = program.compiled() ? nullptr : program.ahead_target();
    if (target == nullptr || !has_process(process, *target)) return;
    const auto result = process->compile(program.text(), expected_launches(program));
    if (result == CompileProcess::Result::made) program.compiled_ahead();
    // A launch for nothing (runtime/trial_launches.hpp) may end a process.
    if (result == CompileProcess::Result::lost) process.reset();
}

}  // namespace dlprim
