// SPDX-License-Identifier: MIT
// Progress: says on standard error what is worked on: a bar on a terminal, and elsewhere a line
// every ten seconds, so that nobody takes a slow driver for one that hangs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace dlprim::doctor {

class Progress {
  public:
    Progress();
    /// Clears the bar.
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// The present piece of work, before which `done` of `total` are done. Any thread may call it.
    void show(const std::string& what, int done, int total);

  private:
    void draw_bar() const;
    void say_now_and_then();

    const bool on_terminal_;
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ends_ = false;
    std::string what_;
    int done_ = 0, total_ = 0;
    std::thread thread_;  ///< without a terminal
};

}  // namespace dlprim::doctor
