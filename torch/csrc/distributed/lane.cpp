// SPDX-License-Identifier: MIT
#include "distributed/lane.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

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

    void stop(std::chrono::milliseconds patience) {
        std::unique_lock lock(mutex);
        stopped = true;
        changed.notify_all();
        changed.wait_for(lock, patience, [&] { return !running && jobs.empty(); });
    }
};

namespace {

/// The states of lanes. Leaked, since lanes may go after static objects.
struct Lanes {
    std::mutex mutex;
    std::vector<std::weak_ptr<void>> states;
};

Lanes& lanes() {
    static auto* const made = new Lanes;
    return *made;
}

}  // namespace

Lane::Lane() : state_(std::make_shared<State>()) {
    {
        const std::lock_guard lock(lanes().mutex);
        std::erase_if(lanes().states, [](const auto& state) { return state.expired(); });
        lanes().states.push_back(state_);
    }
    std::thread([state = state_] { state->work(); }).detach();
}

Lane::~Lane() {
    stop(std::chrono::milliseconds(0));
}

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
    state_->stop(patience);
}

void stop_lanes(std::chrono::milliseconds patience) {
    std::vector<std::weak_ptr<void>> all;
    {
        const std::lock_guard lock(lanes().mutex);
        all = lanes().states;
    }
    for (const std::weak_ptr<void>& one : all)
        if (const auto state = std::static_pointer_cast<Lane::State>(one.lock()))
            state->stop(patience);
}

}  // namespace dlprim_torch
