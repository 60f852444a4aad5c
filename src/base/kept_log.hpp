// SPDX-License-Identifier: MIT
// Log lines of threads that others wait for. A receiver may need a lock that the waiting thread
// holds, as Python's does, so that such a thread must not call it.
#pragma once

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

/// Sends what was kept, of all threads, to the receiver. Does nothing on a thread that has a
/// KeptLog.
void pass_kept_log();

}  // namespace dlprim
