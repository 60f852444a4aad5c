// SPDX-License-Identifier: MIT
// NoFileSizeSignal: a library must not end the process because a file grew too large.
#pragma once

#include <csignal>
#include <ctime>

namespace dlprim {

/// While it lives, a write beyond the process's file size limit returns an error code and raises no
/// signal.
class NoFileSizeSignal {
  public:
    NoFileSizeSignal() {
        sigemptyset(&set_);
        sigaddset(&set_, SIGXFSZ);
        pthread_sigmask(SIG_BLOCK, &set_, &old_);
    }
    ~NoFileSizeSignal() {
        if (sigismember(&old_, SIGXFSZ)) return;
        const timespec none{};
        while (sigtimedwait(&set_, nullptr, &none) == SIGXFSZ) {
        }
        pthread_sigmask(SIG_SETMASK, &old_, nullptr);
    }
    NoFileSizeSignal(const NoFileSizeSignal&) = delete;
    NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

  private:
    sigset_t set_{}, old_{};
};

}  // namespace dlprim
