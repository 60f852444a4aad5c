// SPDX-License-Identifier: MIT
#include "distributed/lane.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace dlprim_torch {

// Shared with the thread, which outlives the lane where a job waits for a rank that is gone.
struct Lane::State {
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
};

Lane::Lane() : state_(std::make_shared<State>()) {
    std::thread([state = state_] { state->work(); }).detach();
}

Lane::~Lane() { stop(std::chrono::milliseconds(0)); }

void Lane::push(Job job) {
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

void Lane::stop(std::chrono::milliseconds patience) {
    std::unique_lock lock(state_->mutex);
    state_->stopped = true;
    state_->changed.notify_all();
    state_->changed.wait_for(lock, patience,
                             [&] { return !state_->running && state_->jobs.empty(); });
}

}  // namespace dlprim_torch
