// SPDX-License-Identifier: MIT
// Threads of the library that get no signals, which belong to the program's own threads.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

#include <pthread.h>

namespace dlprim {

/// Starts such a thread. Throws std::system_error.
template <typename Work>
std::thread without_signals(Work work) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread made;
    try {
        made = std::thread(std::move(work));
    } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return made;
}

}  // namespace dlprim
