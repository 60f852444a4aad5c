// SPDX-License-Identifier: MIT
// TrainDisplay. Times are of a steady clock: the system's clock may jump.
#include "train_display.hpp"

#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>

namespace dlprim::tools {

namespace {

template <typename... Values>
std::string format(const char* how, Values... values) {
    char text[128];
    std::snprintf(text, sizeof(text), how, values...);
    return text;
}

/// Columns of the terminal that standard output is. A terminal that does not tell has 80.
std::size_t terminal_width() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

/// How the first metric is shown: "accuracy 0.9876".
std::string metric_text(const TrainProgress& p, bool test) {
    const auto& metrics = test ? p.test_metrics : p.metrics;
    std::string text;
    for (const auto& [name, value] : metrics) {
        std::string spoken = name;
        std::replace(spoken.begin(), spoken.end(), '_', ' ');
        text += format(", %s%s %.4f", test ? "test " : "", spoken.c_str(), value);
    }
    return text;
}

}  // namespace

std::string bar_line(std::size_t width, double share, const std::vector<std::string>& parts) {
    constexpr std::size_t least = 10, most = 30;  // characters between the bar's brackets
    std::string behind;
    std::size_t taken = parts.at(0).size();
    for (std::size_t i = 1; i < parts.size(); ++i) {
        if (taken + 2 + parts[i].size() > width) break;
        behind += "  " + parts[i];
        taken += 2 + parts[i].size();
    }
    std::string bar;
    if (taken + 3 + least <= width) {
        const std::size_t length = std::min(most, width - taken - 3);
        const auto full = static_cast<std::size_t>(share * static_cast<double>(length));
        bar = " [" + std::string(std::min(full, length), '=') +
              std::string(length - std::min(full, length), ' ') + "]";
    }
    return (parts[0] + bar + behind).substr(0, width);
}

std::string duration_text(double seconds) {
    const auto all = static_cast<long long>(std::clamp(seconds, 0.0, 1e9) + 0.5);
    if (all < 3600) return format("%lld:%02lld", all / 60, all % 60);
    return format("%lld:%02lld:%02lld", all / 3600, all / 60 % 60, all % 60);
}

TrainDisplay::TrainDisplay(std::string examples)
    : examples_(std::move(examples)),
      terminal_(::isatty(STDOUT_FILENO) != 0),
      interval_(terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(10)) {}

double TrainDisplay::seconds_left(const TrainProgress& p) const {
    const std::int64_t done = (p.epoch - 1) * p.batches + p.batch;
    if (done <= first_) return -1;
    const double passed = std::chrono::duration<double>(Clock::now() - begin_).count();
    return passed / static_cast<double>(done - first_) *
           static_cast<double>(p.epochs * p.batches - done);
}

std::vector<std::string> TrainDisplay::parts(const TrainProgress& p) const {
    std::vector<std::string> parts{
        format("epoch %d/%d: batch %lld/%lld", p.epoch, p.epochs, static_cast<long long>(p.batch),
               static_cast<long long>(p.batches)),
        format("loss %.4f", p.loss)};
    if (!p.metrics.empty()) parts.push_back(metric_text(p, false).substr(2));
    if (const double left = seconds_left(p); left >= 0)
        parts.push_back(duration_text(left) + " left");
    parts.push_back(format("%.0f %s/s", p.images_per_second, examples_.c_str()));
    parts.push_back(format("rate %.2g", p.learning_rate));
    return parts;
}

void TrainDisplay::clear() {
    if (shown_) std::printf("\r\033[K");
    shown_ = false;
}

void TrainDisplay::note(std::string_view text) {
    clear();
    std::printf("note: %.*s\n", static_cast<int>(text.size()), text.data());
    std::fflush(stdout);
}

void TrainDisplay::progress(const TrainProgress& p) {
    const auto now = Clock::now();
    if (first_ < 0) {
        first_ = (p.epoch - 1) * p.batches + p.batch;
        begin_ = now;
    }
    if (p.epoch_done) {
        std::printf("%sepoch %d/%d: loss %.4f%s", terminal_ ? "\r\033[K" : "", p.epoch, p.epochs,
                    p.loss, metric_text(p, false).c_str());
        if (!p.test_metrics.empty())
            std::printf(", test loss %.4f%s", p.test_loss, metric_text(p, true).c_str());
        std::printf(", %.0f %s/s\n", p.images_per_second, examples_.c_str());
        std::fflush(stdout);
        shown_ = false;
        return;
    }
    if (!asked_ && now - last_ < interval_) return;
    const std::vector<std::string> shown = parts(p);
    if (asked_ || !terminal_) {
        clear();
        std::string line = shown[0];
        for (std::size_t i = 1; i < shown.size(); ++i) line += ", " + shown[i];
        std::printf("%s\n", line.c_str());
        // A log of a long run has a line a minute.
        if (!asked_) interval_ = std::min<Clock::duration>(2 * interval_, std::chrono::minutes(1));
    } else {
        const double share = static_cast<double>(p.batch) /
                             static_cast<double>(std::max<std::int64_t>(1, p.batches));
        std::printf("\r\033[K%s", bar_line(terminal_width() - 1, share, shown).c_str());
        shown_ = true;
    }
    std::fflush(stdout);
    last_ = now;
    asked_ = false;
}

}  // namespace dlprim::tools
