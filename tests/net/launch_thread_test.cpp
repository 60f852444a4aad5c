// SPDX-License-Identifier: MIT
// Launches of eager calls by a thread of the context (DLPRIM_LAUNCH_THREAD): their order, the
// memory and the kernels that they use, and who waits for them. The entry net_eager_launch_thread
// runs the other tests of eager calls with such a thread, too.
#include "net/support.hpp"
#include "runtime/access.hpp"
#include "runtime/context_impl.hpp"
#include "support/held_queue.hpp"
#include "support/threads.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// The same device once more, with a thread ("1") or without one ("0").
Context open(const Context& like, const char* by_thread) {
    const Variable set("DLPRIM_LAUNCH_THREAD", by_thread);
    return Context(like.info().id);
}

/// How many launches the context's thread has made.
std::uint64_t launched_by_thread(const Context& context) {
    context.finish();
    return Access::impl(context).queue().launched_by_thread();
}

/// One after the other, each reading what the one before wrote: x * y + x, in place.
std::vector<float> chain(const Context& device, int calls) {
    const Tensor x(device, Shape{300}, random_floats(300, 1));
    const Tensor y(device, Shape{300}, random_floats(300, 2, -0.01, 0.01));
    ops::CallOptions how{.out = {x}};
    for (int i = 0; i < calls; ++i) {
        ops::call("Pointwise", R"({"code": "y0 = x0 * x1 + x0"})", {x, y}, {}, how);
        if (i % 3 == 0) ops::call("Pointwise", R"({"code": "y0 = x0 + 0.001"})", {x}, {}, how);
    }
    return x.to_floats();
}

}  // namespace

TEST_CASE("launches by a thread are made in their order", "[launch_thread]") {
    ON_EVERY_DEVICE(device) {
        const Context by_thread = open(device, "1"), by_caller = open(device, "0");
        // More than its ring of records holds.
        CHECK(chain(by_thread, 6000) == chain(by_caller, 6000));
        // All but the first call of each kind, which waits to see whether its kernels work.
        if (!device.traits().host) CHECK(launched_by_thread(by_thread) >= 7998);
        CHECK(launched_by_thread(by_caller) == 0);
    }
}

TEST_CASE("memory stays until launches by a thread have used it", "[launch_thread]") {
    ON_EVERY_DEVICE(device) {
        const auto run = [&](const Context& context) {
            Tensor sum(context, Shape{1000}, std::vector<float>(1000, 0));
            for (int i = 0; i < 500; ++i) {
                // Both operands' memory is given back while the launch may still be waiting.
                const Tensor step(context, Shape{1000}, std::vector<float>(1000, 1));
                sum = ops::call("Pointwise", R"({"code": "y0 = x0 + x1"})", {sum, step}).at(0);
                if (i % 100 == 99) context.release_cached();
            }
            return sum.to_floats();
        };
        CHECK(run(open(device, "1")) == std::vector<float>(1000, 500));
    }
}

TEST_CASE("launches by a thread come from several threads", "[launch_thread]") {
    ON_EVERY_DEVICE(device) {
        constexpr int callers = 4, calls = 500;
        const std::vector<float> right = chain(open(device, "0"), calls);
        const Context context = open(device, "1");
        chain(context, 4);
        const std::uint64_t before = launched_by_thread(context);
        std::vector<std::vector<float>> found(callers);
        in_threads(callers, [&](std::size_t i) {
            found[i] = chain(context, calls);
            if (i == 0) context.release_cached();
        });
        CHECK(found == std::vector<std::vector<float>>(callers, right));
        const std::uint64_t all = callers * (calls + (calls + 2) / 3);
        if (!device.traits().host) CHECK(launched_by_thread(context) == before + all);
    }
}

TEST_CASE("whoever waits sees what a thread has launched", "[launch_thread]") {
    ON_EVERY_DEVICE(device) {
        const Context context = open(device, "1");
        const Tensor x(context, Shape{8}, std::vector<float>(8, 0));
        ops::CallOptions how{.out = {x}};
        const auto add = [&](int calls) {
            for (int i = 0; i < calls; ++i)
                ops::call("Pointwise", R"({"code": "y0 = x0 + 1"})", {x}, {}, how);
        };
        add(50);
        context.finish();
        const Counters before = context.counters();
        add(50);
        CHECK(context.counters().launches == before.launches + 50);
        CHECK(context.counters().waits == before.waits);
        Event(context).wait();
        CHECK(x.to_floats() == std::vector<float>(8, 100));
        add(5);
        std::vector<float> read(8);
        x.copy_to_host_async(read.data(), read.size() * sizeof(float)).wait();
        CHECK(read == std::vector<float>(8, 105));
    }
}

TEST_CASE("a context with waiting launches ends cleanly", "[launch_thread]") {
    ON_EVERY_DEVICE(device) {
        for (int round = 0; round < 5; ++round) chain(open(device, "1"), 20);
        const Context context = open(device, "1");
        const Tensor x(context, Shape{8}, std::vector<float>(8, 0));
        for (int i = 0; i < 100; ++i) ops::call("Pointwise", R"({"code": "y0 = x0 + 1"})", {x});
    }
}

TEST_CASE("DLPRIM_SYNC leaves launches to their callers, with the same results",
          "[launch_thread]") {
    ON_EVERY_DEVICE(device) {
        const std::vector<float> expected = chain(open(device, "1"), 50);
        const Variable sync("DLPRIM_SYNC", "1");
        const Context waiting = open(device, "1");
        CHECK(chain(waiting, 50) == expected);
        CHECK(launched_by_thread(waiting) == 0);
        if (device.traits().host) continue;
        // A call returns when it is done, here not before the queue is released.
        const Tensor x(waiting, Shape{8, 8}, std::vector<float>(64, 1));
        ops::call("MatMul", "{}", {x, x});  // makes the engine
        auto held = std::make_unique<HeldQueue>(waiting);
        std::atomic<bool> released{false};
        std::thread releases_later([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            released = true;
            held.reset();
        });
        ops::call("MatMul", "{}", {x, x});
        CHECK(released);
        releases_later.join();
    }
}

TEST_CASE("a wrong DLPRIM_LAUNCH_THREAD is an error", "[launch_thread]") {
    for (const Context& device : test_devices())
        if (!device.traits().host)
            check_error(invalid, {"DLPRIM_LAUNCH_THREAD must be 0 or 1, not 'yes'"},
                        [&] { open(device, "yes"); });
}
