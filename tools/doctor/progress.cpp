// SPDX-License-Identifier: MIT
// Progress.
#include "doctor/progress.hpp"

#include <unistd.h>
#include <cstdio>

namespace dlprim::doctor {

namespace {

constexpr std::chrono::seconds between_lines{10};

}  // namespace

Progress::Progress() : on_terminal_(isatty(STDERR_FILENO) != 0) {
    if (!on_terminal_) thread_ = std::thread([this] { say_now_and_then(); });
}

Progress::~Progress() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
        what_.clear();
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    if (on_terminal_) draw_bar();
}

void Progress::show(const std::string& what, int done, int total) {
    const std::lock_guard lock(mutex_);
    what_ = what;
    done_ = done;
    total_ = total;
    if (on_terminal_) draw_bar();
}

void Progress::draw_bar() const {
    constexpr int width = 24;
    std::fprintf(stderr, "\r\033[K");
    if (!what_.empty()) {
        const int full = total_ > 0 ? width * done_ / total_ : 0;
        std::fprintf(stderr, "[%s%s] %d/%d %s",
                     std::string(static_cast<std::size_t>(full), '#').c_str(),
                     std::string(static_cast<std::size_t>(width - full), '.').c_str(), done_,
                     total_, what_.substr(0, 40).c_str());
    }
    std::fflush(stderr);
}

void Progress::say_now_and_then() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, between_lines, [this] { return ends_; })) {
        if (what_.empty()) continue;
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
        std::fprintf(stderr, "dlprim_doctor: %.0f s: %s", seconds.count(), what_.c_str());
        if (total_ > 1) std::fprintf(stderr, " (%d of %d done)", done_, total_);
        std::fputc('\n', stderr);
    }
}

}  // namespace dlprim::doctor
