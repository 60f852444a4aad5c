// SPDX-License-Identifier: MIT
// compile_by_processes: each process has a thread here that gives it one program after another.
#include "runtime/compile_ahead.hpp"

#include "base/env.hpp"
#include "base/text.hpp"
#include "runtime/background_compiles.hpp"
#include "runtime/compile_program.hpp"
#include "runtime/devices.hpp"
#include "runtime/expected_launches.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <numeric>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace dlprim {
namespace {

/// What processes must have to do to be worth their start.
struct Least {
    int threads, programs, programs_each;
};
// The calling thread compiles, too, so two processes beside it gain nothing on two cores.
// A process first opens the device, which takes about as long as compiling a program or two.
constexpr Least least_usually = {3, 16, 4};
// The calling thread leaves all programs to the processes. The first program of a process takes
// half a second more than those after it, which take 0.1 to 0.8 s each.
constexpr Least least_at_launch = {2, 4, 2};
// More processes are slower: the more open the device at once, the longer each of them waits for
// it. The first batch of a cold ResNet-50 training step on an H200 took 10.7 s with four processes,
// 8.7 s with eight, 7.4 s with twelve and 7.7 s with sixteen. Every process also holds a context in
// the device's memory.
constexpr int most_processes = 12;
// A process may take half a GiB of the host's memory and of the device's. Together the processes
// take at most a quarter.
constexpr std::uint64_t memory_each = std::uint64_t{2} << 30;

using Clock = std::chrono::steady_clock;

std::optional<int> wanted_processes() {
    const auto text = env("DLPRIM_COMPILE_PROCESSES");
    if (!text) return std::nullopt;
    int value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    require(
        error == std::errc() && end == text->data() + text->size() && value >= 0 && value <= 1024,
        "DLPRIM_COMPILE_PROCESSES must be a number from 0 to 1024, not '", *text, "'");
    return value;
}

Least least_for(const CompileTarget* target) {
    return target != nullptr && target->compiles_at_launch() ? least_at_launch : least_usually;
}

int processes_that_fit(const CompileTarget& target) {
    const auto memory = static_cast<std::uint64_t>(most_processes) * memory_each;
    return static_cast<int>(std::min({memory, host_memory(), target.device_memory()}) /
                            memory_each);
}

int processes_that_pay(const CompileTarget& target, int programs, int threads) {
    const Least least = least_for(&target);
    if (programs < least.programs) return 0;
    return std::min({threads, programs / least.programs_each, processes_that_fit(target)});
}

/// Where another process may compile the program. Where it compiles all there is to it, it also
/// tries the functions that the program calls, which the calling thread would do before all
/// programs.
const CompileTarget* target_for(const PendingProgram& program) {
    const CompileTarget* const target = program.ahead_target();
    return target == nullptr || target->compiles_at_launch() ? target : program.target();
}

/// Sorts indices of programs. A long compilation that begins last would keep all others waiting.
template <typename Indices>
void sort_longest_first(Indices& indices, const PendingPrograms& programs) {
    std::stable_sort(indices.begin(), indices.end(), [&](std::size_t a, std::size_t b) {
        return programs[a]->text().source.size() > programs[b]->text().source.size();
    });
}

/// The programs that are not finished: those that a process may take, and those that a process has
/// handed over to the calling thread.
class AheadList {
  public:
    explicit AheadList(const PendingPrograms& programs) {
        const CompileTarget* target = nullptr;
        for (std::size_t i = 0; i < programs.size(); ++i) {
            const CompileTarget* own = target_for(*programs[i]);
            if (target == nullptr) target = own;
            (own != nullptr && own == target ? left_ : handed_over_).push_back(i);
        }
        sort_longest_first(left_, programs);
    }

    /// Takes the longest program that is left, for a process.
    std::optional<std::size_t> draw() {
        const std::lock_guard lock(mutex_);
        if (left_.empty()) return std::nullopt;
        const std::size_t index = left_.front();
        left_.pop_front();
        ++drawn_;
        return index;
    }
    bool any_left() {
        const std::lock_guard lock(mutex_);
        return !left_.empty();
    }
    /// Leaves a program that was drawn to the calling thread.
    void hand_over(std::size_t index) {
        const std::lock_guard lock(mutex_);
        --drawn_;
        handed_over_.push_back(index);
        change_.notify_one();
    }
    /// Tells how the number of processes that draw has changed.
    void count_drawing(int change) {
        const std::lock_guard lock(mutex_);
        drawing_ += change;
        change_.notify_one();
    }

    struct Next {
        bool finished = false;
        std::optional<std::size_t> index;  ///< nothing if there was no program for a while
    };
    /// Waits for the next program for the calling thread: one that a process has handed over, or,
    /// while no process draws, the shortest that is left.
    Next next() {
        const auto a_while = std::chrono::milliseconds(100);
        std::unique_lock lock(mutex_);
        change_.wait_for(lock, a_while, [&] {
            return !handed_over_.empty() || (left_.empty() ? drawn_ == 0 : drawing_ == 0);
        });
        if (!handed_over_.empty()) {
            const std::size_t index = handed_over_.front();
            handed_over_.pop_front();
            return {false, index};
        }
        if (left_.empty()) return {drawn_ == 0, std::nullopt};
        if (drawing_ > 0) return {};
        const std::size_t index = left_.back();
        left_.pop_back();
        return {false, index};
    }

  private:
    std::mutex mutex_;
    std::condition_variable change_;
    std::deque<std::size_t> left_, handed_over_;
    int drawn_ = 0, drawing_ = 0;
};

/// The processes and their threads. The destructor ends them all.
class Crew {
  public:
    Crew(const PendingPrograms& programs, const CompileTarget& target, const CompileCrew& crew,
         AheadList& list)
        : programs_(programs), target_(target), crew_(crew), list_(list) {
        try {
            for (int i = 0; i < crew.processes; ++i) {
                threads_.emplace_back([this] { work(); });
                if (draws_from_start_) list_.count_drawing(1);
            }
        } catch (const std::system_error&) {
            // There are fewer processes then.
        }
    }
    ~Crew() {
        stop_ = true;
        for (std::thread& thread : threads_) thread.join();
    }
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    int made() const { return made_; }
    double seconds_to_first() const { return static_cast<double>(first_ready_ms_) / 1e3; }
    double seconds_to_last() const { return static_cast<double>(last_made_ms_) / 1e3; }

  private:
    void work() {
        bool draws = draws_from_start_;
        try {
            do {
                CompileProcess process(crew_.executable, target_, stop_, crew_.patience);
                if (!process.ready()) break;
                if (!any_ready_.exchange(true)) first_ready_ms_ = elapsed_ms();
                if (!std::exchange(draws, true)) list_.count_drawing(1);
                while (!stop_ && give_next(process)) {
                }
                // A launch for nothing (runtime/trial_launches.hpp) may end a process.
            } while (target_.compiles_at_launch() && !stop_ && list_.any_left());
        } catch (const std::exception& error) {
            log(LogLevel::debug, cat("a process that compiles is let go: ", error.what()));
        }
        if (draws) list_.count_drawing(-1);
    }
    /// Has the process compile one more program. Returns false if it is to end.
    bool give_next(CompileProcess& process) noexcept {
        const auto index = list_.draw();
        if (!index) return false;
        auto result = CompileProcess::Result::lost;
        try {
            const PendingProgram& program = *programs_[*index];
            result = process.compile(program.text(), expected_launches(program));
        } catch (const std::exception&) {
            // Memory has run out, for example.
        }
        if (result == CompileProcess::Result::made) {
            programs_[*index]->compiled_ahead();
            ++made_;
            last_made_ms_ = elapsed_ms();
        }
        list_.hand_over(*index);
        return result == CompileProcess::Result::made || result == CompileProcess::Result::failed;
    }
    std::int64_t elapsed_ms() const {
        return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_).count();
    }

    const Clock::time_point start_ = Clock::now();
    const PendingPrograms& programs_;
    const CompileTarget& target_;
    const CompileCrew& crew_;
    AheadList& list_;
    /// Whether the calling thread leaves all programs to processes that have yet to start. What it
    /// compiled would only be half of the work.
    const bool draws_from_start_ = target_.compiles_at_launch();
    std::atomic<bool> stop_{false}, any_ready_{false};
    std::atomic<int> made_{0};
    std::atomic<std::int64_t> first_ready_ms_{0}, last_made_ms_{0};
    std::vector<std::thread> threads_;
};

const CompileTarget* target_of(const PendingPrograms& programs) {
    for (const auto& program : programs)
        if (const CompileTarget* target = target_for(*program)) return target;
    return nullptr;
}

}  // namespace

std::optional<CompileCrew> crew_for(const PendingPrograms& programs, int threads) {
    const std::optional<int> wanted = wanted_processes();
    if (wanted == 0) return std::nullopt;
    const CompileTarget* target = target_of(programs);
    const Least least = least_for(target);
    // In these cases the disk is not looked at.
    if (!wanted &&
        (threads < least.threads || programs.size() < static_cast<std::size_t>(least.programs)))
        return std::nullopt;
    if (target == nullptr || !target->disk().writable()) return std::nullopt;
    const auto executable = compile_program();
    if (!executable) return std::nullopt;
    const auto count =
        static_cast<int>(std::count_if(programs.begin(), programs.end(), [&](const auto& program) {
            return target_for(*program) == target;
        }));
    const int processes =
        wanted ? std::min(*wanted, count) : processes_that_pay(*target, count, threads);
    if (processes < 1) return std::nullopt;
    return CompileCrew{*executable, processes};
}

BackgroundCompiles* background_for(const PendingPrograms& programs) {
    const CompileTarget* const target = target_of(programs);
    return target != nullptr ? target->background() : nullptr;
}

std::optional<CompileCrew> lasting_crew(const CompileTarget& target, int threads) {
    const std::optional<int> wanted = wanted_processes();
    if (!target.compiles_at_launch() || !target.disk().enabled() || !target.disk().writable())
        return std::nullopt;
    const int processes = wanted.value_or(std::min(threads, processes_that_fit(target)));
    if (processes < 1 || (!wanted && threads < least_at_launch.threads)) return std::nullopt;
    const auto executable = compile_program();
    if (!executable) return std::nullopt;
    return CompileCrew{*executable, processes};
}

std::vector<std::exception_ptr> compile_by_processes(
    const PendingPrograms& programs, const CompileCrew& crew,
    const std::function<void(std::size_t, std::size_t)>& begins) {
    std::vector<std::exception_ptr> errors(programs.size());
    const CompileTarget* target = target_of(programs);
    AheadList list(programs);
    std::optional<Crew> at_work;
    if (target != nullptr) at_work.emplace(programs, *target, crew, list);
    double seconds = 0;
    std::size_t done = 0, current = 0;
    for (;;) {
        const AheadList::Next next = list.next();
        if (next.finished) break;
        if (next.index) current = *next.index;
        if (begins && done < programs.size()) begins(done, current);
        if (!next.index) continue;
        const auto start = Clock::now();
        try {
            programs[current]->compile_now();
        } catch (...) {
            errors[current] = std::current_exception();
        }
        seconds += std::chrono::duration<double>(Clock::now() - start).count();
        ++done;
    }
    if (at_work)
        log(LogLevel::info,
            cat(at_work->made(), " of ", programs.size(), " programs compiled by ", crew.processes,
                " processes, the first of which was ready after ", at_work->seconds_to_first(),
                " s and the last done after ", at_work->seconds_to_last(), " s; this process took ",
                seconds, " s to load these and compile the others"));
    return errors;
}

std::vector<std::exception_ptr> compile_in_background(
    const PendingPrograms& programs, BackgroundCompiles& background,
    const std::function<void(std::size_t, std::size_t)>& begins) {
    std::vector<std::exception_ptr> errors(programs.size());
    std::vector<std::size_t> left(programs.size());
    std::iota(left.begin(), left.end(), std::size_t{0});
    sort_longest_first(left, programs);
    PendingPrograms waiting;
    for (const std::size_t index : left) waiting.push_back(programs[index]);
    background.add(waiting);
    while (!left.empty()) {
        const auto next = background.first_finished(waiting);
        const std::size_t current = left[next.value_or(0)];
        if (begins) begins(programs.size() - left.size(), current);
        if (!next) continue;
        const auto at = static_cast<std::ptrdiff_t>(*next);
        left.erase(left.begin() + at);
        waiting.erase(waiting.begin() + at);
        try {
            programs[current]->compile_now();
        } catch (...) {
            errors[current] = std::current_exception();
        }
    }
    return errors;
}

}  // namespace dlprim
