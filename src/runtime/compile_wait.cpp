// SPDX-License-Identifier: MIT
// The receiver of waits for compilers, and WaitingForCompiler, which tells it.
#include "base/text.hpp"
#include "runtime/program_builds.hpp"

#include <dlprim/compile_wait.hpp>

#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <utility>

#include <unistd.h>

namespace dlprim {
namespace {

using Clock = std::chrono::steady_clock;

/// Those that begin later than this after the last one has ended are another wait.
constexpr std::chrono::seconds between_waits{1};

struct Waits {
    std::mutex mutex;
    std::shared_ptr<const std::function<void(const CompileWait&)>> receiver;
    bool open = false;  ///< whether some thread tells of a wait
    Clock::time_point begin, end;
    int done = 0;  ///< programs of the wait before those of the open object
};

// Never destroyed: objects with static lifetime may compile while the process ends.
Waits& waits() {
    static Waits* instance = new Waits;
    return *instance;
}

/// Calls the receiver, without the mutex: it may wait for a lock that another thread holds.
void tell(int done, int programs, bool ended) {
    CompileWait wait;
    std::shared_ptr<const std::function<void(const CompileWait&)>> receiver;
    {
        const std::lock_guard lock(waits().mutex);
        receiver = waits().receiver;
        wait.done = waits().done + done;
        wait.total = waits().done + programs;
        wait.seconds = std::chrono::duration<double>(Clock::now() - waits().begin).count();
        wait.ended = ended;
    }
    if (receiver) (*receiver)(wait);
}

}  // namespace

std::string CompileWait::str() const {
    std::string text = cat("compiling kernels: ", done, " of ", total, " are done");
    if (done > 0 && done < total)
        text += cat(", ", std::lround(std::ceil(seconds / done * (total - done))), " s left");
    return text;
}

void set_compile_wait(std::function<void(const CompileWait&)> receiver) {
    auto held =
        receiver
            ? std::make_shared<const std::function<void(const CompileWait&)>>(std::move(receiver))
            : nullptr;
    const std::lock_guard lock(waits().mutex);
    waits().receiver.swap(held);  // the present one is destroyed without the mutex
}

std::function<void(const CompileWait&)> compile_wait_line() {
    if (::isatty(STDERR_FILENO) == 0) return [](const CompileWait&) {};
    const auto write = [](const std::string& text) {
        return ::write(STDERR_FILENO, text.data(), text.size()) >= 0;
    };
    return [write, shown = false](const CompileWait& wait) mutable {
        const std::string begin = "\r\033[K";  // clears the line
        if (wait.ended && shown) shown = !write(begin);
        if (!wait.ended && wait.seconds > 2) shown = write(begin + wait.str());
    };
}

WaitingForCompiler::WaitingForCompiler(int programs) : programs_(programs) {
    const std::lock_guard lock(waits().mutex);
    outermost_ = !UntoldWaits::active() && !std::exchange(waits().open, true);
    if (!outermost_) return;
    const Clock::time_point now = Clock::now();
    if (now - waits().end < between_waits) return;
    waits().begin = now;
    waits().done = 0;
}

WaitingForCompiler::~WaitingForCompiler() {
    if (!outermost_) return;
    try {
        tell(programs_, programs_, true);
    } catch (...) {
        // Nobody waits any more.
    }
    const std::lock_guard lock(waits().mutex);
    waits().end = Clock::now();
    waits().done += programs_;
    waits().open = false;
}

void WaitingForCompiler::at(int done) const {
    if (outermost_) tell(done, programs_, false);
}

}  // namespace dlprim
