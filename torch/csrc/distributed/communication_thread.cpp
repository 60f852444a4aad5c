// SPDX-License-Identifier: MIT
#include "distributed/communication_thread.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace dlprim_torch {

// Shared with the thread, which outlives the object where a job waits for a rank that is gone.
struct CommunicationThread::State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Job> jobs;
    bool stopped = false;
    bool running = false;

    void work() {
        std::unique_lock lock(mutex);
        while (true) {
            changed.wait(lock, [&] { return stopped || !jobs.empty(); });
            if (jobs.empty()) return;
            Job job = std::move(jobs.front());
            jobs.pop_front();
            const bool cancelled = stopped;
            running = true;
            lock.unlock();
            job(cancelled);
            job = nullptr;  // frees what the job holds, outside of the lock
            lock.lock();
            running = false;
            changed.notify_all();
        }
    }

    void stop(std::chrono::milliseconds timeout) {
        std::unique_lock lock(mutex);
        stopped = true;
        changed.notify_all();
        changed.wait_for(lock, timeout, [&] { return !running && jobs.empty(); });
    }
};

namespace {

/// Leaked, since threads may end after static objects.
struct States {
    std::mutex mutex;
    std::vector<std::weak_ptr<void>> states;
};

States& states() {
    static auto* const made = new States;
    return *made;
}

}  // namespace

CommunicationThread::CommunicationThread() : state_(std::make_shared<State>()) {
    {
        const std::lock_guard lock(states().mutex);
        std::erase_if(states().states, [](const auto& state) { return state.expired(); });
        states().states.push_back(state_);
    }
    std::thread([state = state_] { state->work(); }).detach();
}

CommunicationThread::~CommunicationThread() {
    stop(std::chrono::milliseconds(0));
}

void CommunicationThread::push(Job job) {
    {
        const std::lock_guard lock(state_->mutex);
        if (!state_->stopped) {
            state_->jobs.push_back(std::move(job));
            state_->changed.notify_all();
            return;
        }
    }
    job(true);
}

void CommunicationThread::stop(std::chrono::milliseconds timeout) {
    state_->stop(timeout);
}

void stop_communication_threads(std::chrono::milliseconds timeout) {
    std::vector<std::weak_ptr<void>> all;
    {
        const std::lock_guard lock(states().mutex);
        all = states().states;
    }
    for (const std::weak_ptr<void>& one : all)
        if (const auto state = std::static_pointer_cast<CommunicationThread::State>(one.lock()))
            state->stop(timeout);
}

}  // namespace dlprim_torch
