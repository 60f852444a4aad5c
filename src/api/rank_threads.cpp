// SPDX-License-Identifier: MIT
// RankThreads.
#include "api/rank_threads.hpp"

#include "base/text.hpp"

#include <dlprim/error.hpp>

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

namespace dlprim {

/// What a thread shares with the team, and keeps if it is left behind.
struct RankThreads::State {
    std::shared_ptr<Barrier> barrier;
    std::mutex mutex;
    std::exception_ptr thrown;  ///< by a function of the caller, if it is no Error

    void call(const std::function<void(std::size_t)>& work, std::size_t rank) {
        try {
            work(rank);
        } catch (const Error& error) {
            barrier->fail(rank, error);
        } catch (...) {  // of the caller's own functions
            const std::lock_guard lock(mutex);
            if (!thrown) thrown = std::current_exception();
            barrier->fail(rank, Error(ErrorKind::device, "was stopped by an exception"));
        }
    }
};

RankThreads::RankThreads(std::shared_ptr<Barrier> barrier) : state_(std::make_shared<State>()) {
    const std::chrono::microseconds spin = barrier->spin();
    for (std::size_t rank = 1; rank < barrier->size(); ++rank)
        threads_.push_back(std::make_unique<Mover>(barrier->deadline(), spin, spin));
    state_->barrier = std::move(barrier);
}

void RankThreads::run(const std::function<void(std::size_t)>& work,
                      std::chrono::duration<double> deadline) {
    if (threads_.empty()) return work(0);  // whose errors need no name
    Barrier& barrier = *state_->barrier;
    barrier.check();
    for (std::size_t i = 0; i < threads_.size(); ++i)
        threads_[i]->post([state = state_, work, rank = i + 1] { state->call(work, rank); });
    state_->call(work, 0);
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::min(deadline, longest_wait);
    std::size_t late = 0;  // the first one, if there is any
    for (std::size_t i = threads_.size(); i-- > 0;)
        if (!threads_[i]->ends_within(until - Clock::now())) late = i + 1;
    {
        const std::lock_guard lock(state_->mutex);
        if (state_->thrown) std::rethrow_exception(state_->thrown);
    }
    if (late > 0)
        barrier.fail(late,
                     Error(ErrorKind::device,
                           cat("has not ended its work ", deadline.count(),
                               " seconds after the first device: look after the device, or set a "
                               "longer deadline")));
    barrier.check();
}

}  // namespace dlprim
