// SPDX-License-Identifier: MIT
// Programs compiled together on threads, and builds that fail without a word, tried again.
#include "runtime/program_builds.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "runtime/access.hpp"
#include "runtime/build_again.hpp"
#include "runtime/cache_folder.hpp"
#include "runtime/pocl_cache.hpp"
#include "runtime/small_programs.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

using namespace dlprim;
using testing::Variable;
namespace fs = std::filesystem;

namespace {

/// A program whose compilation is a function.
class Fake : public PendingProgram {
  public:
    Fake(std::size_t bytes, std::function<void()> work)
        : text_{"fake", std::string(bytes, ' '), ""}, work_(std::move(work)) {}
    bool compiled() const noexcept override { return false; }
    void compile_now() const override { work_(); }
    const ProgramSource& text() const noexcept override { return text_; }
    const std::string& text_hash() const override { return text_.name; }

  private:
    ProgramSource text_;
    std::function<void()> work_;
};

std::string message(const std::exception_ptr& error) {
    if (!error) return "";
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& caught) {
        return caught.what();
    }
}

}  // namespace

TEST_CASE("programs are compiled once each, the longest first, and errors keep their place") {
    for (const int threads : {1, 2, 9}) {
        std::mutex mutex;
        std::vector<int> begun;
        PendingPrograms programs;
        for (int i = 0; i < 20; ++i)
            programs.push_back(std::make_shared<Fake>(100 + i, [&, i] {
                {
                    const std::lock_guard lock(mutex);
                    begun.push_back(i);
                }
                if (i % 7 == 3) throw std::runtime_error("program " + std::to_string(i));
            }));
        std::size_t told = 0;
        const auto errors = compile_together(programs, threads, [&](std::size_t done, std::size_t) {
            CHECK(done >= told);
            CHECK(done < 20);
            told = done;
        });
        REQUIRE(errors.size() == 20);
        for (int i = 0; i < 20; ++i)
            CHECK(message(errors[static_cast<std::size_t>(i)]) ==
                  (i % 7 == 3 ? "program " + std::to_string(i) : ""));
        if (threads == 1) CHECK(std::is_sorted(begun.rbegin(), begun.rend()));
        std::sort(begun.begin(), begun.end());
        REQUIRE(begun.size() == 20);
        for (int i = 0; i < 20; ++i) CHECK(begun[static_cast<std::size_t>(i)] == i);
    }
    CHECK(compile_together({}, 4).empty());
}

TEST_CASE("programs are compiled at the same time") {
    std::mutex mutex;
    std::condition_variable change;
    int inside = 0;
    bool met = false;
    const auto meet = [&] {
        std::unique_lock lock(mutex);
        met = ++inside == 3 || met;
        change.notify_all();
        change.wait_for(lock, std::chrono::seconds(60), [&] { return met; });
    };
    const PendingPrograms programs(3, std::make_shared<Fake>(1, meet));
    compile_together(programs, 3);
    CHECK(met);
}

TEST_CASE("a caller that gives up waits for the other threads, which begin nothing more") {
    std::atomic<int> begun{0}, ended{0};
    const auto work = [&] {
        ++begun;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ++ended;
    };
    const PendingPrograms programs(50, std::make_shared<Fake>(1, work));
    const auto give_up = [](std::size_t, std::size_t) { throw std::runtime_error("enough"); };
    CHECK_THROWS_AS(compile_together(programs, 3, give_up), std::runtime_error);
    CHECK(begun == ended);
    CHECK(begun < 50);
}

TEST_CASE("programs of a device are compiled on many threads with cold caches") {
    for (int round = 0; round < 3; ++round) {
        const CacheFolder folder;
        for (const Context& context : opencl_contexts()) {
            INFO(context.info().name);
            const std::uint64_t before = context.counters().compiles;
            std::vector<std::shared_ptr<Program>> made;
            PendingPrograms pending;
            {
                const NotedBuilds noted;
                for (int i = 0; i < 12; ++i) made.push_back(Access::impl(context).build(adds(i)));
                Access::impl(context).build({"bad", "kernel void bad() { nonsense(); }", ""});
                CHECK(Access::impl(context).build(adds(0)) == made[0]);
                pending = noted.programs();
            }
            REQUIRE(pending.size() == 14);
            CHECK(pending[13] == pending[0]);  // which two threads may draw at a time
            CHECK(context.counters().compiles == before);
            const auto errors = compile_together(pending, 8);
            CHECK(context.counters().compiles == before + 13);
            for (std::size_t i = 0; i < errors.size(); ++i) {
                CHECK((errors[i] != nullptr) == (i == 12));
                CHECK(pending[i]->compiled() == (i != 12));
            }
            CHECK(message(errors[12]).find("'bad'") != std::string::npos);
            for (int i = 0; i < 12; ++i)
                CHECK(run_adds(context, made[static_cast<std::size_t>(i)]) ==
                      static_cast<float>(3 + i));
            // What failed is known, and is not tried again.
            CHECK_THROWS_AS(pending[12]->compile_now(), Error);
            CHECK(context.counters().compiles == before + 13);
        }
    }
}

TEST_CASE("a build that fails and names no error is tried again") {
    const CacheFolder folder;
    const auto tries = [](const std::vector<Attempt>& results, Attempt expected) {
        std::size_t calls = 0;
        CHECK(build_again_in_turn([&] { return results.at(calls++); }, "test") == expected);
        return calls;
    };
    const Attempt worked = Attempt::worked, failed = Attempt::failed,
                  silent = Attempt::failed_in_silence;
    CHECK(tries({worked}, worked) == 1);
    CHECK(tries({failed}, failed) == 1);
    CHECK_FALSE(fs::exists(folder.path() / "build.lock"));
    CHECK(tries({silent, worked}, worked) == 2);
    CHECK(fs::exists(folder.path() / "build.lock"));
    CHECK(tries({silent, failed}, failed) == 2);
    CHECK(tries({silent, silent, worked}, worked) == 3);
    CHECK(tries({silent, silent, silent}, silent) == 3);

    CHECK(first_error("").empty());
    CHECK(first_error("Device x failed to build the program\n\n").empty());
    CHECK(first_error("a\nb.cl:3: error: no\nfatal") == "b.cl:3: error: no");
}

TEST_CASE("builds are tried again one at a time") {
    for (const bool folder_serves : {true, false}) {
        const CacheFolder folder;
        if (!folder_serves) ::setenv("DLPRIM_CACHE_DIR", "/proc/nowhere", 1);
        std::atomic<int> inside{0}, most{0};
        const auto work = [&] {
            int calls = 0;
            build_again_in_turn(
                [&] {
                    if (calls++ == 0) return Attempt::failed_in_silence;
                    most = std::max(most.load(), ++inside);
                    std::this_thread::sleep_for(std::chrono::milliseconds(10));
                    --inside;
                    return Attempt::worked;
                },
                "test");
        };
        std::vector<std::thread> threads;
        for (int i = 0; i < 6; ++i) threads.emplace_back(work);
        for (std::thread& thread : threads) thread.join();
        CHECK(most == 1);
    }
}

TEST_CASE("processes take turns with a program on PoCL") {
    // A folder of the test's own: other programs hold locks in the one that PoCL began with.
    const CacheFolder folder;
    const Variable cache("POCL_CACHE_DIR", folder.path());
    for (const Context& context : opencl_contexts()) {
        if (context.info().platform != "Portable Computing Language") continue;
        // Another process's locks, on what any program may have.
        std::vector<int> locks;
        for (int i = 0; i < 64; ++i) {
            const fs::path file = pocl_cache_folder() / cat("dlprim-program-", i, ".lock");
            locks.push_back(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
            REQUIRE(::flock(locks.back(), LOCK_EX | LOCK_NB) == 0);
        }
        std::atomic<bool> done{false};
        std::thread builder([&] {
            run_adds(context, Access::impl(context).build(adds(12345)));
            done = true;
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        CHECK_FALSE(done);
        for (const int lock : locks) ::close(lock);
        builder.join();
        CHECK(done);
    }
}

TEST_CASE("one of six processes", "[.six]") {
    const Context context(env("DLPRIM_TEST_ID").value());
    for (int i = 0; i < 6; ++i)
        CHECK(run_adds(context, Access::impl(context).build(adds(i))) == static_cast<float>(3 + i));
}

// Half of such rounds used to fail on PoCL, whose cache they fill at once.
TEST_CASE("six processes with cold caches") {
    const std::string self =
        cat("'", fs::read_symlink("/proc/self/exe").string(), "' '[.six]' > /dev/null & ");
    for (const Context& context : opencl_contexts()) {
        const Variable id("DLPRIM_TEST_ID", context.info().id);
        const bool shares = context.info().platform == "Portable Computing Language";
        for (int round = 0; round < (shares ? 4 : 1); ++round) {
            INFO(context.info().name << ", round " << round);
            const CacheFolder folder;
            const Variable cache("POCL_CACHE_DIR", folder.path() / "pocl");
            std::string start, wait;
            for (int i = 0; i < 6; ++i) {
                start += cat(self, "p", i, "=$!; ");
                wait += cat("wait $p", i, " || failed=1; ");
            }
            CHECK(std::system(cat("failed=0; ", start, wait, "exit $failed").c_str()) == 0);
        }
    }
}
