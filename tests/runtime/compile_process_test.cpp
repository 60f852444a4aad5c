// SPDX-License-Identifier: MIT
// Processes that compile for this one: what they make, and what is left where they fail or end.
#include "runtime/compile_process.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "runtime/access.hpp"
#include "runtime/cache_folder.hpp"
#include "runtime/compile_ahead.hpp"
#include "runtime/compiler_survey.hpp"
#include "runtime/small_programs.hpp"
#include "support/catch.hpp"

#include <dlprim/net.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dlprim;
using testing::Variable;
namespace fs = std::filesystem;
using std::chrono::milliseconds;

namespace {

using Result = CompileProcess::Result;

const fs::path executable = DLPRIM_COMPILE_EXECUTABLE;

/// An executable of a few lines of shell, in place of the real one.
fs::path script(const CacheFolder& folder, const std::string& lines) {
    fs::create_directories(folder.path());
    fs::path file = folder.path() / "script";
    write_file_atomically(file, "#!/bin/sh\n" + lines + '\n');
    fs::permissions(file, fs::perms::owner_all);
    return file;
}

/// Whether a process is there and not only waits for its parent to ask how it ended.
bool is_alive(pid_t process) {
    std::error_code code;
    const fs::path file = cat("/proc/", process, "/stat");
    if (!fs::exists(file, code)) return false;
    const std::string text = read_file(file);
    return text.substr(text.rfind(')')).substr(0, 3) != ") Z";
}

bool has_children() {
    return ::waitpid(-1, nullptr, WNOHANG) >= 0;
}

/// Becomes true within ten seconds.
template <typename Condition>
bool soon(Condition&& condition) {
    for (int i = 0; i < 1000 && !condition(); ++i) std::this_thread::sleep_for(milliseconds(10));
    return condition();
}

std::set<std::string> kept_in(const CacheFolder& folder) {
    std::set<std::string> names;
    std::error_code code;
    for (const auto& entry : fs::directory_iterator(folder.path() / "kernels", code))
        names.insert(entry.path().filename());
    return names;
}

/// A started process for the programs of a context.
struct Started {
    explicit Started(const Context& context, const CompileProcess::Patience& patience = {})
        : pending(pending_adds(context, 2)),
          process(executable, *pending.at(0)->target(), stop, patience) {}
    std::atomic<bool> stop{false};
    PendingPrograms pending;
    CompileProcess process;
};

}  // namespace

TEST_CASE("a process puts programs where the library looks for them") {
    for (const Context& context : opencl_contexts()) {
        const CacheFolder folder;
        const Context cold(context.info().id);
        INFO(cold.info().str());
        Started started(cold);
        REQUIRE(started.process.ready());
        CHECK(started.process.compile(started.pending[0]->text()) == Result::made);
        CHECK(started.pending[0]->target() == nullptr);  // nothing is left to do for a process
        CHECK(started.pending[1]->target() != nullptr);
        CHECK(kept_in(folder).size() == 1);
        started.pending[0]->compile_now();
        CHECK(cold.counters().compiles == 0);
        CHECK(cold.counters().cache_hits == 1);
        CHECK(run_adds(cold, Access::impl(cold).build(adds(0))) == 3);
    }
    CHECK_FALSE(has_children());
}

TEST_CASE("what does not build in a process is no harm to the next program") {
    for (const Context& context : opencl_contexts()) {
        const CacheFolder folder;
        Started started(Context(context.info().id));
        REQUIRE(started.process.ready());
        CHECK(started.process.compile({"bad", "kernel void bad() { nonsense(); }", ""}) ==
              Result::failed);
        CHECK(started.process.compile(started.pending[1]->text()) == Result::made);
    }
}

TEST_CASE("a process writes to the cache folder of the context, whatever the environment says") {
    for (const Context& context : opencl_contexts()) {
        const CacheFolder folder;
        const Context cold(context.info().id);
        const Variable other("DLPRIM_CACHE_DIR", folder.path() / "other");
        Started started(cold);
        REQUIRE(started.process.ready());
        CHECK(started.process.compile({"bad", "kernel void bad() { nonsense(); }", ""}) ==
              Result::failed);
        CHECK(fs::exists(folder.path() / "logs"));
        CHECK_FALSE(fs::exists(folder.path() / "other"));
    }
}

TEST_CASE("programs compiled by processes are those that threads compile") {
    for (const Context& context : opencl_contexts()) {
        INFO(context.info().str());
        std::set<std::string> by_threads, by_processes;
        for (const bool processes : {false, true}) {
            const CacheFolder folder;
            const Context cold(context.info().id);
            const PendingPrograms pending = pending_adds(cold, 12);
            const auto errors = processes ? compile_by_processes(pending, {executable, 3})
                                          : compile_together(pending, 2);
            CHECK(std::count(errors.begin(), errors.end(), nullptr) == 12);
            // Whoever compiles a program, it was compiled for this context.
            CHECK(cold.counters().compiles == 12);
            CHECK(cold.counters().cache_hits == 0);
            for (int i = 0; i < 12; ++i)
                CHECK(run_adds(cold, Access::impl(cold).build(adds(i))) ==
                      static_cast<float>(3 + i));
            (processes ? by_processes : by_threads) = kept_in(folder);
        }
        CHECK(by_processes == by_threads);
    }
    CHECK_FALSE(has_children());
}

TEST_CASE("errors keep their place, and say what they say without processes") {
    for (const Context& context : opencl_contexts()) {
        const CacheFolder folder;
        const Context cold(context.info().id);
        PendingPrograms pending = pending_adds(cold, 4);
        const NotedBuilds noted;
        Access::impl(cold).build({"bad", "kernel void bad() { nonsense(); }", ""});
        pending.insert(pending.begin() + 2, noted.programs().at(0));
        const auto errors = compile_by_processes(pending, {executable, 2});
        for (std::size_t i = 0; i < errors.size(); ++i) CHECK((errors[i] != nullptr) == (i == 2));
        CHECK_THROWS_AS(std::rethrow_exception(errors[2]), Error);
    }
}

TEST_CASE("where processes are of no use, this one compiles") {
    for (const Context& context : opencl_contexts()) {
        for (const char* lines : {"exit 1", "kill -9 $$", "echo nonsense >&0", "exec sleep 1000"}) {
            INFO(lines);
            const CacheFolder folder;
            const Context cold(context.info().id);
            const PendingPrograms pending = pending_adds(cold, 3);
            const auto errors = compile_by_processes(pending, {script(folder, lines), 2});
            CHECK(std::count(errors.begin(), errors.end(), nullptr) == 3);
            CHECK(cold.counters().compiles == 3);
            CHECK_FALSE(has_children());
        }
        const CacheFolder folder;
        const Context cold(context.info().id);
        const auto errors =
            compile_by_processes(pending_adds(cold, 3), {"/nowhere/to/be/found", 2});
        CHECK(std::count(errors.begin(), errors.end(), nullptr) == 3);
    }
}

TEST_CASE("a process that is killed, or that hangs, is let go") {
    for (const Context& context : opencl_contexts()) {
        for (const int signal : {SIGKILL, SIGSTOP}) {
            const CacheFolder folder;
            const Context cold(context.info().id);
            pid_t process = -1;
            {
                Started started(cold, {milliseconds(60'000), milliseconds(300)});
                REQUIRE(started.process.ready());
                process = started.process.process();
                ::kill(process, signal);
                CHECK(started.process.compile(started.pending[0]->text()) == Result::lost);
                CHECK(started.process.compile(started.pending[1]->text()) == Result::lost);
            }
            CHECK_FALSE(is_alive(process));
            CHECK_FALSE(has_children());
        }
    }
}

TEST_CASE("a caller that gives up does not wait for processes") {
    for (const Context& context : opencl_contexts()) {
        const CacheFolder folder;
        const Context cold(context.info().id);
        const auto give_up = [](std::size_t, std::size_t) { throw std::runtime_error("enough"); };
        CHECK_THROWS_AS(compile_by_processes(pending_adds(cold, 20), {executable, 2}, give_up),
                        std::runtime_error);
        CHECK_FALSE(has_children());
    }
}

TEST_CASE("a process has no files of its parent, and no signals from its terminal") {
    for (const Context& context : opencl_contexts()) {
        const CacheFolder folder;
        const Context cold(context.info().id);
        fs::create_directories(folder.path());
        const fs::path file = folder.path() / "secret";
        const int open = ::open(file.c_str(), O_RDWR | O_CREAT, 0600);  // not close-on-exec
        Started started(cold);
        REQUIRE(started.process.ready());
        std::error_code code;
        const pid_t process = started.process.process();
        for (const auto& entry : fs::directory_iterator(cat("/proc/", process, "/fd")))
            CHECK(fs::read_symlink(entry, code) != file);
        CHECK(::getpgid(process) == process);
        ::close(open);
    }
}

TEST_CASE("a parent that waits to be killed", "[.parent]") {
    Started started(Context(env("DLPRIM_TEST_ID").value()));
    REQUIRE(started.process.ready());
    write_file_atomically(env("DLPRIM_TEST_FILE").value(), cat(started.process.process()));
    std::this_thread::sleep_for(std::chrono::minutes(5));
}

TEST_CASE("processes end when their parent is killed") {
    for (const Context& context : opencl_contexts()) {
        const CacheFolder folder;
        fs::create_directories(folder.path());
        const fs::path told = folder.path() / "process";
        const Variable id("DLPRIM_TEST_ID", context.info().id), file("DLPRIM_TEST_FILE", told);
        const pid_t parent = ::fork();
        if (parent == 0) {
            ::execl("/proc/self/exe", "compile_process_test", "[.parent]", nullptr);
            ::_exit(1);
        }
        REQUIRE(soon([&] { return fs::exists(told); }));
        const pid_t process = std::atoi(read_file(told).c_str());
        CHECK(is_alive(process));
        ::kill(parent, SIGKILL);
        ::waitpid(parent, nullptr, 0);
        CHECK(soon([&] { return !is_alive(process); }));
    }
}

namespace {

/// What a small network gives for made-up weights, planned with a cold cache.
std::vector<float> cold_result(const std::string& id, const char* processes,
                               std::set<std::string>& kept) {
    const CacheFolder folder;
    const Variable count("DLPRIM_COMPILE_PROCESSES", processes);
    const Variable program("DLPRIM_COMPILE_PROGRAM", executable);
    const Context cold(id);
    Net net = Net::from_json(cold, R"({
        "inputs": [{"name": "x", "shape": [2, 8, 12, 12]}],
        "outputs": ["y"],
        "operators": [
            {"name": "conv", "type": "Convolution2D", "inputs": ["x"], "outputs": ["c"],
             "options": {"channels_out": 16, "kernel": 3, "pad": 1}},
            {"name": "pool", "type": "Pooling2D", "inputs": ["c"], "outputs": ["p"],
             "options": {"kernel": 2, "stride": 2}},
            {"name": "last", "type": "InnerProduct", "inputs": ["p"], "outputs": ["f"],
             "options": {"outputs": 10}},
            {"name": "soft", "type": "Softmax", "inputs": ["f"], "outputs": ["y"]}
        ]})");
    net.initialize();
    net.input("x").fill(0);
    net.forward();
    kept = kept_in(folder);
    return net.output("y").to_floats();
}

}  // namespace

TEST_CASE("a net planned with processes gives the same bits, and keeps the same programs") {
    for (const Context& context : opencl_contexts()) {
        INFO(context.info().str());
        std::set<std::string> without, with;
        const std::vector<float> expected = cold_result(context.info().id, "0", without);
        CHECK(cold_result(context.info().id, "2", with) == expected);
        CHECK(with == without);
        CHECK(without.size() > 1);
    }
    CHECK_FALSE(has_children());
}

TEST_CASE("a process also does what PoCL leaves to the first launch of a kernel") {
    const std::string one_item = "kernel __attribute__((reqd_work_group_size(1, 1, 1))) void ";
    for (const Context& context : opencl_contexts()) {
        const CacheFolder folder;
        const Variable pocl("POCL_CACHE_DIR", folder.path() / "pocl");
        const Context cold(context.info().id);
        Started started(cold);
        if (!started.pending[0]->target()->compiles_at_launch()) continue;
        const auto finished = [&](const char* kernel) {
            const fs::recursive_directory_iterator files(folder.path() / "pocl");
            return std::any_of(begin(files), end(files), [&](const fs::directory_entry& file) {
                return file.path().filename() == cat(kernel, ".so");
            });
        };
        REQUIRE(started.process.ready());
        const std::string sum = one_item +
                                "sum(global const float* x, ulong offset, int n, global float* y)\n"
                                "{ for (int i = 0; i < n; ++i) y[offset] += x[i]; }\n";
        CHECK(started.process.compile({"sum", sum, ""}) == Result::made);
        CHECK(finished("sum"));
        // A kernel that does not say how large its work-groups are needs an expected launch.
        const auto any_size = [](const char* name) {
            return cat("kernel void ", name, "(global float* x) { x[get_global_id(0)] = 1; }\n");
        };
        CHECK(started.process.compile({"unknown", any_size("unknown"), ""}) == Result::made);
        CHECK_FALSE(finished("unknown"));
        CHECK(started.process.compile({"expected", any_size("expected"), ""},
                                      "other 1 1 1\nexpected 8 2 1\n") == Result::made);
        CHECK(finished("expected"));
        // A kernel may not bear the numbers that it is given, but it was compiled before.
        const std::string wild =
            one_item + "wild(global float* x, int n) { x[(long)n << 40] = 0; }\n";
        CHECK(started.process.compile({"wild", wild, ""}) == Result::lost);
        CHECK(finished("wild"));
    }
    CHECK_FALSE(has_children());
}

TEST_CASE("a kernel that does not end with the numbers of a trial ends its process") {
    const std::string endless =
        "kernel __attribute__((reqd_work_group_size(1, 1, 1)))\n"
        "void endless(global volatile int* x) { while (1) x[0] = 1; }\n";
    for (const Context& context : opencl_contexts()) {
        const CacheFolder folder;
        const Context cold(context.info().id);
        Started started(cold);
        if (!started.pending[0]->target()->compiles_at_launch()) continue;
        REQUIRE(started.process.ready());
        CHECK(started.process.compile({"endless", endless, ""}) == Result::lost);
    }
    CHECK_FALSE(has_children());
}

TEST_CASE("a compiler that compiles prefetches needs no shield") {
    for (const Context& context : opencl_contexts()) {
        const CacheFolder folder;
        const Context cold(context.info().id);
        const PendingPrograms pending = pending_adds(cold, 1);
        const CompileTarget& target = *pending[0]->target();
        CHECK_FALSE(known_survey(target));
        CHECK(survey_compiler(target, executable).prefetches);
        REQUIRE(known_survey(target));
        CHECK(known_survey(target)->prefetches);
        CHECK_FALSE(known_survey(target)->needs_shield);
        CHECK_FALSE(known_survey(target)->ends_at_launch);
    }
}

TEST_CASE("a program that ends the compiler's process ends no other") {
    const std::string guarded =
        "#ifndef NO_PREFETCH\nkernel void f(global float* x) { __builtin_prefetch(x); }\n"
        "#else\nkernel void f(global float* x) { x[0] = 0; }\n#endif\n";
    const std::string deadly = "kernel void f(global float* x) { __builtin_prefetch(x); }\n";
    for (const Context& context : opencl_contexts()) {
        // PoCL's compiler is known to be sound, so it is not tried.
        if (context.info().platform == "Portable Computing Language") continue;
        const CacheFolder folder;
        const fs::path fragile = script(
            folder, cat("LD_PRELOAD=", DLPRIM_FRAGILE_COMPILER, " exec ", executable.string()));
        const Variable program("DLPRIM_COMPILE_PROGRAM", fragile);
        {
            const Context cold(context.info().id);
            Access::impl(cold).build({"guarded", guarded, ""});
            CHECK_THROWS_WITH(Access::impl(cold).build({"deadly", deadly, ""}),
                              Catch::Contains("ends its process over 'deadly'"));
            CHECK(run_adds(cold, Access::impl(cold).build(adds(4))) == 7);
            const PendingPrograms pending = pending_adds(cold, 6);
            const CompileTarget& target = *pending[5]->target();
            CHECK_FALSE(known_survey(target)->prefetches);
            CHECK(known_survey(target)->needs_shield);
            // What ended a process once is not tried again.
            CompileShield shield(target);
            CHECK_FALSE(shield.survives({"deadly", deadly, ""}, "/nowhere"));
        }
    }
    CHECK_FALSE(has_children());
}

TEST_CASE("a launch that ends the compiler's process ends no other") {
    const std::string deadly =
        "kernel __attribute__((reqd_work_group_size(1, 1, 1))) void deadly(global float* x)\n"
        "{ x[0] = 1; }\n";
    for (const Context& context : opencl_contexts()) {
        if (context.info().platform == "Portable Computing Language") continue;
        const CacheFolder folder;
        const fs::path fragile =
            script(folder, cat("DLPRIM_TEST_FRAGILE_LAUNCH=1 LD_PRELOAD=", DLPRIM_FRAGILE_COMPILER,
                               " exec ", executable.string()));
        const Variable program("DLPRIM_COMPILE_PROGRAM", fragile);
        // The second context finds what the first one has kept.
        for (int time = 0; time < 2; ++time) {
            const Context cold(context.info().id);
            CHECK_THROWS_WITH(Access::impl(cold).build({"deadly", deadly, ""}),
                              Catch::Contains("ends its process over 'deadly'"));
            CHECK(run_adds(cold, Access::impl(cold).build(adds(4))) == 7);
            const PendingPrograms pending = pending_adds(cold, 1);
            CHECK(known_survey(*pending[0]->target())->ends_at_launch);
        }
    }
    CHECK_FALSE(has_children());
}
