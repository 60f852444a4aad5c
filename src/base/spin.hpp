// SPDX-License-Identifier: MIT
// spin_until: waits for something that is about to happen, without sleep. To wake a thread
// that sleeps takes tens of microseconds, which a GPU without work would wait for.
#pragma once

#include <chrono>
#include <thread>

namespace dlprim {

/// Asks again and again whether `done`, for at most `patience`, and lets other threads run
/// meanwhile. Returns what the last answer was. Does not ask at all without patience.
template <typename Done>
bool spin_until(const Done& done, std::chrono::microseconds patience) {
    if (patience <= std::chrono::microseconds::zero()) return false;
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!done()) {
        if (std::chrono::steady_clock::now() >= until) return false;
        std::this_thread::yield();
    }
    return true;
}

}  // namespace dlprim
