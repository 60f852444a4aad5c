// SPDX-License-Identifier: MIT
// BackgroundCompiles: each process has a thread here that gives it one program after another.
#include "runtime/background_compiles.hpp"

#include "base/text.hpp"
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
    for (const auto& program : programs) {
        if (program->compiled() || !unfinished_.insert(program.get()).second) continue;
        waiting_.push_back(program);
        added_.notify_one();
    }
    if (!waiting_.empty()) start_threads();
}

void BackgroundCompiles::start_threads() {
    try {
        while (threads_.size() < static_cast<std::size_t>(crew_.processes))
            threads_.push_back(without_signals([this] { work(); }));
    } catch (const std::system_error&) {
        if (!threads_.empty()) return;  // there are fewer processes then
        waiting_.clear();
        unfinished_.clear();
    }
}

void BackgroundCompiles::wait_for(const PendingPrograms& programs) {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] {
        return stop_ || std::none_of(programs.begin(), programs.end(), [&](const auto& program) {
                   return unfinished_.count(program.get()) > 0;
               });
    });
}

std::size_t BackgroundCompiles::unfinished() const {
    const std::lock_guard lock(mutex_);
    return unfinished_.size();
}

void BackgroundCompiles::work() {
    std::optional<CompileProcess> process;
    const auto has_work = [this] { return stop_ || !waiting_.empty(); };
    std::unique_lock lock(mutex_);
    for (;;) {
        if (!added_.wait_for(lock, idle, has_work)) {
            lock.unlock();
            process.reset();
            lock.lock();
            added_.wait(lock, has_work);
        }
        if (stop_) return;
        const auto program = std::move(waiting_.front());
        waiting_.pop_front();
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

void BackgroundCompiles::compile(std::optional<CompileProcess>& process,
                                 const PendingProgram& program) {
    const CompileTarget* const target = program.compiled() ? nullptr : program.ahead_target();
    if (target == nullptr || failed_starts_ >= most_failed_starts) return;
    if (!process) {
        process.emplace(crew_.executable, *target, stop_, crew_.patience);
        if (!process->ready()) {
            ++failed_starts_;
            return process.reset();
        }
    }
    const auto result = process->compile(program.text());
    if (result == CompileProcess::Result::made) program.compiled_ahead();
    // A launch for nothing (runtime/trial_launches.hpp) may end a process.
    if (result == CompileProcess::Result::lost) process.reset();
}

}  // namespace dlprim
