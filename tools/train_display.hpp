// SPDX-License-Identifier: MIT
// What dlprim_train shows while it trains: a bar on a terminal, a line now and then in a log, and a
// line for each epoch in both.
#pragma once

#include <dlprim/trainer.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::tools {

/// A line of at most `width` characters. `parts` are in order of importance: the last ones are left
/// out where there is no room. Between the first part and the others is a bar, as long as there is
/// room for it.
std::string bar_line(std::size_t width, double share, const std::vector<std::string>& parts);

/// "1:02:03" or "2:03".
std::string duration_text(double seconds);

class TrainDisplay {
  public:
    /// `examples` is what examples are called: "images".
    explicit TrainDisplay(std::string examples);
    void progress(const TrainProgress& p);
    void note(std::string_view text);
    /// Has the next progress printed as a line of its own.
    void ask() { asked_ = true; }
    /// Ends the bar's line, so that something else may be printed.
    void clear();

  private:
    using Clock = std::chrono::steady_clock;
    std::vector<std::string> parts(const TrainProgress& p) const;
    double seconds_left(const TrainProgress& p) const;

    const std::string examples_;
    const bool terminal_;
    bool shown_ = false;  ///< whether a bar is on the screen
    bool asked_ = false;
    Clock::time_point last_ = Clock::now();
    Clock::duration interval_;
    /// When progress was told first, and the number of batches before that.
    Clock::time_point begin_;
    std::int64_t first_ = -1;
};

}  // namespace dlprim::tools
