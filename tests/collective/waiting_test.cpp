// SPDX-License-Identifier: MIT
// How threads of a team wait for each other: with sleep alone, and when they spin before it, as
// teams of GPUs do.
#include "api/rank_threads.hpp"
#include "base/text.hpp"
#include "collective/devices/barrier.hpp"
#include "collective/devices/mover.hpp"
#include "net/support.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

using namespace dlprim;
using namespace dlprim::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::microseconds spins[] = {0us, 200us, 20000us};

std::shared_ptr<Barrier> make_barrier(std::chrono::microseconds spin,
                                      std::chrono::duration<double> deadline = 60s) {
    auto barrier =
        std::make_shared<Barrier>(std::vector<std::string>{"the first", "the second"}, deadline);
    barrier->set_spin(spin);
    return barrier;
}

/// How long it takes to end an object.
template <typename Object>
std::chrono::steady_clock::duration time_to_end(std::unique_ptr<Object>& object) {
    const auto begin = std::chrono::steady_clock::now();
    object.reset();
    return std::chrono::steady_clock::now() - begin;
}

}  // namespace

TEST_CASE("nobody leaves a barrier before all have come", "[waiting]") {
    for (const std::chrono::microseconds spin : spins) {
        INFO("spins for " << spin.count() << " us");
        const auto barrier = make_barrier(spin);
        std::atomic<int> first{0}, second{0};
        const auto work = [&](std::size_t rank, std::atomic<int>& own,
                              const std::atomic<int>& other) {
            for (int i = 1; i <= 200; ++i) {
                if (i % 50 == static_cast<int>(rank)) std::this_thread::sleep_for(2ms);
                own = i;
                barrier->arrive(rank, "to count");
                if (other < i) return false;
            }
            return true;
        };
        bool good = false;
        std::thread thread([&] { good = work(1, second, first); });
        CHECK(work(0, first, second));
        thread.join();
        CHECK(good);
    }
}

TEST_CASE("who waits at a barrier learns of a failure, and of who is missing", "[waiting]") {
    for (const std::chrono::microseconds spin : spins) {
        INFO("spins for " << spin.count() << " us");
        const auto failing = make_barrier(spin);
        std::thread thread([&] {
            std::this_thread::sleep_for(1ms);
            failing->fail(1, Error(ErrorKind::device, "is gone"));
        });
        check_error(ErrorKind::device, {"the second: is gone"},
                    [&] { failing->arrive(0, "to count"); });
        thread.join();
        check_error(ErrorKind::device, {"the second", "did not come to count within 0.05"},
                    [&] { make_barrier(spin, 50ms)->arrive(0, "to count"); });
    }
}

TEST_CASE("who sets no deadline waits as long as it takes", "[waiting]") {
    for (const double seconds : {1e12, std::numeric_limits<double>::infinity()}) {
        const auto barrier = make_barrier(0us, std::chrono::duration<double>(seconds));
        RankThreads threads(barrier);
        const auto arrive = [&](std::size_t rank) {
            if (rank == 1) std::this_thread::sleep_for(20ms);
            barrier->arrive(rank, "to count");
        };
        CHECK_NOTHROW(threads.run(arrive, std::chrono::duration<double>(seconds)));
        Mover mover(3 * barrier->deadline());
        mover.post([] { std::this_thread::sleep_for(20ms); });
        CHECK_NOTHROW(mover.wait());
    }
}

TEST_CASE("a mover is waited for until its last job has ended", "[waiting]") {
    for (const std::chrono::microseconds spin : spins) {
        INFO("spins for " << spin.count() << " us");
        Mover mover(60s, spin);
        std::atomic<int> ended{0};
        for (int step = 1; step <= 20; ++step) {
            for (int job = 0; job < 3; ++job)
                mover.post([&, job] {
                    // Two of them say that they are the last, and one of these is not.
                    if (job > 0) mover.announce_end();
                    std::this_thread::sleep_for(300us);
                    ++ended;
                });
            mover.wait();
            CHECK(ended == 3 * step);
        }
        mover.post([&] {
            mover.announce_end();
            fail(ErrorKind::device, "the last job fails");
        });
        check_error(ErrorKind::device, {"the last job fails"}, [&] { mover.wait(); });
    }
}

TEST_CASE("a mover that has been waited for in vain is left behind at once", "[timing]") {
    std::promise<void> judged;
    auto mover = std::make_unique<Mover>(2s);
    mover->post([end = judged.get_future().share()] { end.wait(); });
    check_error(ErrorKind::device, {"has not moved its sums within"}, [&] { mover->wait(); });
    CHECK(time_to_end(mover) < 1s);
    judged.set_value();
}

TEST_CASE("a mover may end with its own last job", "[waiting]") {
    struct Owner {
        std::promise<void> ended;
        Mover mover{60s};
        ~Owner() { ended.set_value_at_thread_exit(); }
    };
    auto owner = std::make_shared<Owner>();
    std::future<void> ended = owner->ended.get_future();
    std::promise<void> dropped;
    owner->mover.post([owner, last = dropped.get_future().share()] { last.wait(); });
    owner.reset();
    dropped.set_value();
    CHECK(ended.wait_for(10s) == std::future_status::ready);
}

TEST_CASE("threads of ranks work once for each call", "[waiting]") {
    for (const std::chrono::microseconds spin : spins) {
        INFO("spins for " << spin.count() << " us");
        const auto barrier = make_barrier(spin);
        RankThreads threads(barrier);
        std::atomic<int> calls[2] = {};
        for (int call = 1; call <= 50; ++call) {
            if (call % 20 == 0) std::this_thread::sleep_for(2ms);
            threads.run([&](std::size_t rank) { ++calls[rank]; }, 60s);
            CHECK(calls[0] == call);
            CHECK(calls[1] == call);
        }
        check_error(ErrorKind::device, {"the second: cannot"}, [&] {
            threads.run(
                [](std::size_t rank) {
                    if (rank == 1) fail(ErrorKind::device, "cannot");
                },
                60s);
        });
    }
}

TEST_CASE("the rank that does not end its work is named, and left behind at once", "[waiting]") {
    const auto judged = std::make_shared<std::promise<void>>();
    auto threads = std::make_unique<RankThreads>(make_barrier(0us, 2s));
    const auto hang = [end = judged->get_future().share()](std::size_t rank) {
        if (rank == 1) end.wait();
    };
    check_error(ErrorKind::device, {"the second", "has not ended", "0.1 seconds"},
                [&] { threads->run(hang, 100ms); });
    CHECK(time_to_end(threads) < 1s);
    judged->set_value();
}
