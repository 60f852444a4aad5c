// SPDX-License-Identifier: MIT
// Mover.
#include "collective/devices/mover.hpp"

#include "base/spin.hpp"
#include "base/text.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

namespace dlprim {

struct Mover::State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> jobs;
    std::size_t ended = 0;  ///< jobs so far
    bool busy = false, ends = false;
    std::chrono::microseconds idle_spin;
    bool announced = false;            ///< announce_end() since the last wait()
    std::atomic<std::size_t> open{0};  ///< jobs that have not ended
    std::exception_ptr thrown;
};

Mover::Mover(std::chrono::duration<double> patience, std::chrono::microseconds spin,
             std::chrono::microseconds idle_spin)
    : state_(std::make_shared<State>()), patience_(patience), spin_(spin) {
    state_->idle_spin = idle_spin;
    thread_ = std::thread([state = state_] { serve(state); });
}

Mover::~Mover() {
    // A job that has kept the owner of this object lets it go by the object's own thread.
    const bool is_own = thread_.get_id() == std::this_thread::get_id();
    bool idle = false;
    {
        std::unique_lock lock(state_->mutex);
        state_->jobs.clear();
        state_->ends = true;
        state_->changed.notify_all();
        const auto patience = is_own || waited_ ? patience_.zero() : patience_;
        idle = state_->changed.wait_for(lock, patience, [&] { return !state_->busy; });
    }
    if (idle)
        thread_.join();
    else
        thread_.detach();
}

void Mover::serve(const std::shared_ptr<State>& state) {
    for (;;) {
        spin_until([&] { return state->open > 0; }, state->idle_spin);
        std::unique_lock lock(state->mutex);
        state->changed.wait(lock, [&] { return state->ends || !state->jobs.empty(); });
        if (state->ends) return;
        std::function<void()> job = std::move(state->jobs.front());
        state->jobs.pop_front();
        const bool dropped = state->thrown != nullptr;
        state->busy = true;
        lock.unlock();
        std::exception_ptr thrown;
        try {
            if (!dropped) job();
        } catch (...) {
            thrown = std::current_exception();
        }
        job = {};
        lock.lock();
        if (thrown && !state->thrown) state->thrown = thrown;
        state->busy = false;
        --state->open;
        ++state->ended;
        state->changed.notify_all();
    }
}

void Mover::post(std::function<void()> job) {
    const std::lock_guard lock(state_->mutex);
    state_->jobs.push_back(std::move(job));
    ++state_->open;
    state_->changed.notify_all();
}

void Mover::announce_end() {
    const std::lock_guard lock(state_->mutex);
    state_->announced = true;
    state_->changed.notify_all();
}

void Mover::wait() {
    std::unique_lock lock(state_->mutex);
    const auto idle = [&] { return state_->jobs.empty() && !state_->busy; };
    while (!idle()) {
        if (std::exchange(state_->announced, false)) {
            lock.unlock();
            spin_until([&] { return state_->open == 0; }, spin_);
            lock.lock();
            continue;
        }
        const std::size_t ended = state_->ended;
        if (!state_->changed.wait_for(lock, patience_, [&] {
                return idle() || state_->announced || state_->ended != ended;
            })) {
            waited_ = true;
            fail(ErrorKind::device, "has not moved its sums within ", patience_.count(),
                 " seconds: look after the device, or set a longer deadline");
        }
    }
    state_->announced = false;
    if (state_->thrown) std::rethrow_exception(std::exchange(state_->thrown, nullptr));
}

bool Mover::ends_within(std::chrono::duration<double> most) {
    spin_until([&] { return state_->open == 0; }, spin_);
    std::unique_lock lock(state_->mutex);
    waited_ = !state_->changed.wait_for(lock, most,
                                        [&] { return state_->jobs.empty() && !state_->busy; });
    return !waited_;
}

}  // namespace dlprim
