// SPDX-License-Identifier: MIT
// Log lines of threads that others wait for. A receiver may need a lock that the waiting thread
// holds, as Python's does, so that such a thread must not call it.
#pragma once

#include <string_view>

namespace dlprim {

/// While it lives, log() keeps the lines of the calling thread.
class KeptLog {
  public:
    KeptLog() noexcept { ++depth_; }
    ~KeptLog() { --depth_; }
    KeptLog(const KeptLog&) = delete;
    KeptLog& operator=(const KeptLog&) = delete;
    static bool active() noexcept { return depth_ > 0; }

  private:
    inline static thread_local int depth_ = 0;
};

/// While it lives, lines that are kept begin with the name of a call (base/call_name.hpp).
class LogOfCall {
  public:
    /// `name` must outlive this object.
    explicit LogOfCall(std::string_view name) noexcept { name_ = name; }
    ~LogOfCall() { name_ = {}; }
    LogOfCall(const LogOfCall&) = delete;
    LogOfCall& operator=(const LogOfCall&) = delete;
    static std::string_view name() noexcept { return name_; }

  private:
    inline static thread_local std::string_view name_;
};

/// Sends what was kept, of all threads, to the receiver. Does nothing on a thread that has a
/// KeptLog.
void pass_kept_log();

}  // namespace dlprim
