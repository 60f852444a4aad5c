// SPDX-License-Identifier: MIT
// RankThreads.
#include "api/rank_threads.hpp"

#include "base/spin.hpp"
#include "base/text.hpp"

#include <dlprim/error.hpp>

#include <algorithm>
#include <utility>

namespace dlprim {

RankThreads::RankThreads(std::shared_ptr<Barrier> barrier) : state_(std::make_shared<State>()) {
    state_->barrier = std::move(barrier);
    state_->working.assign(state_->barrier->size(), false);
    for (std::size_t rank = 1; rank < state_->barrier->size(); ++rank)
        threads_.emplace_back([state = state_, rank] { serve(state, rank); });
}

RankThreads::~RankThreads() {
    const std::chrono::duration<double> patience = state_->barrier->deadline();
    const bool ended = wait(waited_ ? patience.zero() : patience);
    {
        const std::lock_guard lock(state_->mutex);
        state_->ends = true;
        state_->changed.notify_all();
    }
    for (std::thread& thread : threads_) {
        if (ended)
            thread.join();
        else
            thread.detach();
    }
}

bool RankThreads::wait(std::chrono::duration<double> deadline) {
    spin_until([&] { return state_->busy == 0; }, state_->barrier->spin());
    std::unique_lock lock(state_->mutex);
    return state_->changed.wait_for(lock, std::min(deadline, longest_wait),
                                    [&] { return state_->busy == 0; });
}

void RankThreads::call(State& state, const std::function<void(std::size_t)>& work,
                       std::size_t rank) {
    try {
        work(rank);
    } catch (const Error& error) {
        state.barrier->fail(rank, error);
    } catch (...) {  // of the caller's own functions
        const std::lock_guard lock(state.mutex);
        if (!state.thrown) state.thrown = std::current_exception();
        state.barrier->fail(rank, Error(ErrorKind::device, "was stopped by an exception"));
    }
}

void RankThreads::serve(const std::shared_ptr<State>& state, std::size_t rank) {
    std::size_t done = 0;
    for (;;) {
        std::function<void(std::size_t)> work;
        spin_until([&] { return state->generation != done; }, state->barrier->spin());
        {
            std::unique_lock lock(state->mutex);
            state->changed.wait(lock, [&] { return state->ends || state->generation != done; });
            if (state->generation == done) return;
            done = state->generation;
            work = state->work;
        }
        call(*state, work, rank);
        work = {};
        const std::lock_guard lock(state->mutex);
        state->working[rank] = false;
        --state->busy;
        state->changed.notify_all();
    }
}

void RankThreads::run(const std::function<void(std::size_t)>& work,
                      std::chrono::duration<double> deadline) {
    if (threads_.empty()) return work(0);  // whose errors need no name
    state_->barrier->check();
    {
        const std::lock_guard lock(state_->mutex);
        state_->work = work;
        state_->busy = threads_.size();
        std::fill(state_->working.begin() + 1, state_->working.end(), true);
        ++state_->generation;
        state_->changed.notify_all();
    }
    call(*state_, work, 0);
    wait(deadline);
    {
        const std::lock_guard lock(state_->mutex);
        const auto late = std::find(state_->working.begin(), state_->working.end(), true);
        waited_ = late != state_->working.end();
        if (!waited_) state_->work = nullptr;  // which may keep the owner of these threads alive
        if (state_->thrown) std::rethrow_exception(state_->thrown);
        if (waited_)
            state_->barrier->fail(
                static_cast<std::size_t>(late - state_->working.begin()),
                Error(ErrorKind::device,
                      cat("has not ended its work ", deadline.count(),
                          " seconds after the first device: look after the device, or set a longer "
                          "deadline")));
    }
    state_->barrier->check();
}

}  // namespace dlprim
