// SPDX-License-Identifier: MIT
// A watch whose thread gets no memory says so, and ends no process. This program's operator new
// refuses memory to all threads but a test's own, while the test asks for that.
#include "collective/processes/watch.hpp"
#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>

using namespace dlprim;

namespace {

std::atomic<bool> others_lack_memory{false};
thread_local bool is_the_test = false;

Watch::Options options_of(int rank) {
    Watch::Options options;
    options.rank = rank;
    options.size = 2;
    options.name = "process " + std::to_string(rank);
    options.token = "word";
    options.start = std::chrono::seconds(20);
    return options;
}

}  // namespace

// GCC warns of mismatches where it sees what these do.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    if (others_lack_memory && !is_the_test) throw std::bad_alloc();
    if (void* const memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

TEST_CASE("a watch whose thread gets no memory tells its own process", "[processes]") {
    is_the_test = true;
    std::atomic<int> called{0};
    {
        const auto first = Watch::listen(options_of(0), 0, true);
        const auto second = Watch::connect(options_of(1), {"127.0.0.1"}, first->port());
        CHECK(first->wait_for_all() == second->wait_for_all());
        second->set_step(7);
        for (const auto* watch : {&first, &second})
            (*watch)->on_failure([&](const Failure&) { ++called; });
        others_lack_memory = true;
        for (const auto* watch : {&first, &second}) {
            const auto failure = (*watch)->wait_for_failure(std::chrono::seconds(20));
            REQUIRE(failure);
            CHECK(failure->code == lost_code);
            CHECK(failure->text.find(watch == &first
                                         ? "rank 0 (process 0) ran out of host memory"
                                         : "rank 1 (process 1) ran out of host memory") !=
                  std::string::npos);
        }
        others_lack_memory = false;
        CHECK(called == 2);
        // The others hear that it is lost where they have memory, and calls are refused.
        CHECK_THROWS_AS(second->get("key"), Error);
        second->leave();
    }
    is_the_test = false;
}
