// SPDX-License-Identifier: MIT
// What the receiver of set_compile_wait() is told, and what ends a wait.
#include "runtime/access.hpp"
#include "runtime/cache_folder.hpp"
#include "runtime/small_programs.hpp"
#include "support/catch.hpp"

#include <dlprim/compile_wait.hpp>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace dlprim;

namespace {

/// Keeps what a receiver is told, and removes the receiver at the end.
struct Told {
    Told() {
        set_compile_wait([this](const CompileWait& wait) { waits.push_back(wait); });
    }
    ~Told() { set_compile_wait({}); }
    Told(const Told&) = delete;
    Told& operator=(const Told&) = delete;
    std::vector<CompileWait> waits;
};

/// Longer than the time within which waits count as one.
void pause_between_waits() {
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
}

}  // namespace

TEST_CASE("a wait is told in words") {
    CompileWait wait;
    wait.total = 60;
    CHECK(wait.str() == "compiling kernels: 0 of 60 are done");
    wait.done = 12;
    wait.seconds = 2;
    CHECK(wait.str() == "compiling kernels: 12 of 60 are done, 8 s left");
    wait.done = 60;
    CHECK(wait.str() == "compiling kernels: 60 of 60 are done");
}

TEST_CASE("a plan's programs are one wait, and its end is told") {
    for (const Context& context : opencl_contexts()) {
        const CacheFolder folder;
        const Context cold(context.info().id);
        const PendingPrograms pending = pending_adds(cold, 6);
        pause_between_waits();
        const Told told;
        compile_together(pending, 2);
        REQUIRE(told.waits.size() >= 2);
        CHECK(told.waits.front().done == 0);
        for (const CompileWait& wait : told.waits) CHECK(wait.total == 6);
        for (std::size_t i = 0; i + 1 < told.waits.size(); ++i) CHECK_FALSE(told.waits[i].ended);
        CHECK(told.waits.back().ended);
        CHECK(told.waits.back().done == 6);
    }
}

TEST_CASE("programs that are compiled one by one are one wait until a pause") {
    for (const Context& context : opencl_contexts()) {
        const CacheFolder folder;
        const Context cold(context.info().id);
        pause_between_waits();
        const Told told;
        for (int i = 0; i < 3; ++i) Access::impl(cold).build(adds(i));
        REQUIRE(told.waits.size() == 6);
        for (int i = 0; i < 3; ++i) {
            CHECK(told.waits[static_cast<std::size_t>(2 * i)].done == i);
            CHECK(told.waits[static_cast<std::size_t>(2 * i)].total == i + 1);
            CHECK(told.waits[static_cast<std::size_t>(2 * i + 1)].ended);
        }
        Access::impl(cold).build(adds(0));  // is compiled
        CHECK(told.waits.size() == 6);
        pause_between_waits();
        Access::impl(cold).build(adds(3));
        REQUIRE(told.waits.size() == 8);
        CHECK(told.waits[6].total == 1);
    }
}

TEST_CASE("a receiver that throws ends the wait, and the programs are compiled another time") {
    for (const Context& context : opencl_contexts()) {
        const CacheFolder folder;
        const Context cold(context.info().id);
        const PendingPrograms pending = pending_adds(cold, 4);
        {
            const Told removed;
            set_compile_wait(
                [](const CompileWait&) { throw std::runtime_error("no more waiting"); });
            CHECK_THROWS_WITH(compile_together(pending, 2), "no more waiting");
            CHECK_THROWS_WITH(Access::impl(cold).build(adds(7)), "no more waiting");
        }
        for (const auto& error : compile_together(pending, 2)) CHECK(error == nullptr);
        CHECK(run_adds(cold, Access::impl(cold).build(adds(7))) == 10);
    }
}
