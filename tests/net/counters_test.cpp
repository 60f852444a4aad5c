// SPDX-License-Identifier: MIT
// What a batch costs besides its launches: nothing is allocated or compiled once it runs, and
// nothing waits but who asks for results.
#include "net/support.hpp"

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// What `work`, and waiting for it, adds to the counters.
template <typename Work>
Counters cost(const Context& device, Work&& work) {
    device.finish();
    const Counters before = device.counters();
    work();
    device.finish();
    Counters after = device.counters();
    after.launches -= before.launches;
    after.waits -= before.waits;
    after.allocations -= before.allocations;
    after.compiles -= before.compiles;
    after.cache_hits -= before.cache_hits;
    CHECK(after.allocated_bytes == before.allocated_bytes);
    return after;
}

void check_lean(const Counters& counters) {
    CHECK(counters.launches > 0);
    CHECK(counters.waits <= 1);
    CHECK(counters.allocations == 0);
    CHECK(counters.compiles == 0);
    CHECK(counters.cache_hits == 0);
}

}  // namespace

TEST_CASE("a batch of inference is launches alone", "[counters]") {
    ON_EVERY_DEVICE(device) {
        for (const Mode mode : {Mode::inference, Mode::evaluation, Mode::training}) {
            INFO("mode " << static_cast<int>(mode));
            Net net = Net::from_json(device, small_network, with_mode(mode));
            feed_small_network(net, 0);
            net.forward();
            check_lean(cost(device, [&] { net.forward(); }));
            if (mode == Mode::inference) continue;
            net.backward();
            check_lean(cost(device, [&] { net.backward(); }));
        }
    }
}

TEST_CASE("a training step is launches alone", "[counters]") {
    ON_EVERY_DEVICE(device) {
        for (const int accumulate : {1, 2}) {
            Net net = Net::from_json(device, small_network, training());
            SolverOptions options;
            options.clip_norm = 1;
            options.accumulate = accumulate;
            Solver solver(net, options);
            feed_small_network(net, 0);
            for (int i = 0; i < 2 * accumulate; ++i) solver.step();
            for (int i = 0; i < accumulate; ++i) {
                check_lean(cost(device, [&] {
                    solver.set_learning_rate(0.01 + i);
                    solver.step();
                }));
            }
            // A step that may be called off costs nothing more, once it has been done.
            for (int i = 0; i < accumulate; ++i) CHECK(solver.step_if([] { return true; }));
            check_lean(cost(device, [&] { CHECK(solver.step_if([] { return true; })); }));
            // Feeding inputs waits for each, and is all that adds to it.
            const Counters fed = cost(device, [&] {
                feed_small_network(net, 1);
                solver.step();
            });
            CHECK(fed.waits <= 3);
            CHECK(fed.allocations == 0);
        }
    }
}

TEST_CASE("going back to a shape plans nothing anew", "[counters]") {
    ON_EVERY_DEVICE(device) {
        Net net = Net::from_json(device, small_network, training());
        Solver solver(net, {});
        const auto step_at = [&](std::int64_t batch) {
            net.reshape(batch);
            feed_small_network(net, 0);
            solver.step();
        };
        for (const std::int64_t batch : {4, 2, 4, 2}) step_at(batch);
        const Counters counters = cost(device, [&] {
            step_at(4);
            step_at(2);
        });
        CHECK(counters.allocations == 0);
        CHECK(counters.compiles == 0);
        CHECK(counters.cache_hits == 0);
    }
}

TEST_CASE("a second eager call is launches alone", "[counters]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x(device, Shape{4, 8, 6, 6}, random_floats(4 * 8 * 36, 1));
        const Tensor weight(device, Shape{8, 8, 3, 3}, random_floats(8 * 8 * 9, 2));
        const char* const options = R"({"channels_out": 8, "kernel": 3, "pad": 1, "bias": false})";
        const auto work = [&] {
            const Tensor y = ops::call("Convolution2D", options, {x}, {weight}).at(0);
            ops::backward("Convolution2D", options, {x}, {weight}, {y});
            ops::relu(y);
        };
        work();
        work();
        check_lean(cost(device, work));
    }
}
