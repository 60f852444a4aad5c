// SPDX-License-Identifier: MIT
// The host's threads: coverage, deterministic pieces, exceptions, and calls from several threads.
#include "runtime/host_pool.hpp"
#include "support/catch.hpp"

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace dlprim;

TEST_CASE("loops cover every index once") {
    for (int threads : {1, 2, 5}) {
        HostPool pool(threads);
        CHECK(pool.threads() == threads);
        for (std::int64_t count : {0, 1, 2, 7, 100, 1001}) {
            for (std::int64_t grain : {1, 3, 1000, 5000}) {
                std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
                std::mutex mutex;
                std::set<std::pair<std::int64_t, std::int64_t>> cuts[2];
                for (auto& cut : cuts)
                    pool.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t i = begin; i < end; ++i)
                            ++seen[static_cast<std::size_t>(i)];
                        const std::lock_guard lock(mutex);
                        cut.emplace(begin, end);
                    });
                bool all = true;
                for (const auto& times : seen) all = all && times == 2;
                CHECK(all);
                CHECK(cuts[0] == cuts[1]);
                if (cuts[0].size() > 1)
                    for (const auto& [begin, end] : cuts[0]) CHECK(end - begin >= grain);
            }
        }
    }
}

TEST_CASE("an exception reaches the caller and the pool lives on") {
    HostPool pool(3);
    for (int round = 0; round < 20; ++round) {
        CHECK_THROWS_AS(pool.parallel_for(100, 1,
                                          [](std::int64_t begin, std::int64_t) {
                                              if (begin >= 0) throw std::runtime_error("no");
                                          }),
                        std::runtime_error);
        std::atomic<std::int64_t> sum{0};
        pool.parallel_for(100, 1,
                          [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
        CHECK(sum == 100);
    }
}

TEST_CASE("several callers and nested loops get along") {
    HostPool pool(3);
    std::atomic<std::int64_t> sum{0};
    const auto work = [&] {
        for (int i = 0; i < 50; ++i)
            pool.parallel_for(20, 1, [&](std::int64_t begin, std::int64_t end) {
                pool.parallel_for(end - begin, 1,
                                  [&](std::int64_t b, std::int64_t e) { sum += e - b; });
            });
    };
    std::thread other(work);
    work();
    other.join();
    CHECK(sum == 2 * 50 * 20);
}
