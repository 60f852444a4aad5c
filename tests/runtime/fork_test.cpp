// SPDX-License-Identifier: MIT
// A child of fork() has none of its parent's threads. It must end without waiting for them, and a
// host context that it opens must have threads of its own.
#include "support/catch.hpp"

#include <dlprim/ops.hpp>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace dlprim;

namespace {

/// Work for several threads, and its result.
float product(const Context& context) {
    const Tensor x(context, {200, 200}, std::vector<float>(200 * 200, 2));
    return ops::matmul(x, x).to_floats().at(7);
}

/// The number of threads of this process.
int threads() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

/// The status of a child that does `work` and ends normally. If it hangs, it is killed.
template <typename Work>
int status_of_child(Work&& work) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::alarm(30);
        std::exit(work() ? 0 : 1);  // runs destructors of static objects and exit handlers
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return status;
}

bool has_hung(int status) {
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
}

/// How many of twenty children may hang. The exit handler of TBB, which Intel's runtime for CPUs
/// brings along, waits for a lock that one of TBB's threads may have held at the fork. On a busy
/// machine that is one of a thousand children, with nothing of the library on its stack.
int allowed_hangs(const DeviceInfo& info) {
    return info.platform.find("Intel") != std::string::npos ? 1 : 0;
}

}  // namespace

TEST_CASE("a child of fork ends without what its parent has opened") {
    for (const DeviceInfo& info : Context::devices()) {
        INFO(info.str());
        // A driver's threads are at different points each time. Of ten children, some would hang if
        // work were running, or if they released what the driver holds.
        int hangs = 0;
        for (int i = 0; i < 20; ++i) {
            auto context = std::make_unique<Context>(info.id);
            CHECK(product(*context) == 800);
            auto pending = std::make_unique<Tensor>(*context, Shape{100, 100});
            pending->fill(0);
            const int status = status_of_child([&] {
                pending.reset();
                context.reset();
                return true;
            });
            if (has_hung(status))
                REQUIRE(++hangs <= allowed_hangs(info));
            else
                REQUIRE(status == 0);
            CHECK(product(*context) == 800);
        }
        CHECK(status_of_child([] { return true; }) == 0);
    }
}

TEST_CASE("a host context of a child has threads of its own") {
    CHECK(product(Context("cpu")) == 800);
    CHECK(status_of_child([] {
              const Context context("cpu");
              for (int i = 0; i < 20; ++i)
                  if (product(context) != 800) return false;
              return threads() == context.traits().compute_units;
          }) == 0);
    CHECK(product(Context("cpu")) == 800);
}
