// SPDX-License-Identifier: MIT
// RankThreads.
#include "api/rank_threads.hpp"

#include "base/spin.hpp"

#include <dlprim/error.hpp>

#include <utility>

namespace dlprim {

RankThreads::RankThreads(std::shared_ptr<Barrier> barrier) : state_(std::make_shared<State>()) {
    state_->barrier = std::move(barrier);
    for (std::size_t rank = 1; rank < state_->barrier->size(); ++rank)
        threads_.emplace_back([state = state_, rank] { serve(state, rank); });
}

RankThreads::~RankThreads() {
    const bool ended = wait(state_->barrier->deadline());
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
    return state_->changed.wait_for(lock, deadline, [&] { return state_->busy == 0; });
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
        ++state_->generation;
        state_->changed.notify_all();
    }
    call(*state_, work, 0);
    const bool ended = wait(deadline);
    {
        const std::lock_guard lock(state_->mutex);
        if (ended) state_->work = nullptr;  // which may keep the owner of these threads alive
        if (state_->thrown) std::rethrow_exception(state_->thrown);
    }
    if (!ended)
        state_->barrier->fail(0, Error(ErrorKind::device,
                                       "another device of the run does not end its work; one of "
                                       "them hangs"));
    state_->barrier->check();
}

}  // namespace dlprim
