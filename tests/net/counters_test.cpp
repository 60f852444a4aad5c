// SPDX-License-Identifier: MIT
// The costs of a batch besides its launches: once it has run, nothing is allocated or compiled, it
// is flushed once, and only code that asks for results waits.
#include "graph/operator.hpp"
#include "net/support.hpp"
#include "plan/choose.hpp"

#include <cmath>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// How much `work`, and waiting for it, increases the counters.
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
    after.flushes -= before.flushes;
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

/// A batch or a step of a net is flushed to the device as a whole.
void check_step(const Counters& counters) {
    check_lean(counters);
    CHECK(counters.flushes == 1);
}

/// small_network, but large enough for values to be stored in 16 bits if the device has engines for
/// that. `heavy`: with a loss for which float overflows too, at the largest scales.
Net narrow_network(const Context& device, Precision precision, bool heavy) {
    NetOptions options = training();
    options.batch = 64;
    options.precision = precision;
    // Compilers for CPUs take minutes for GPU kernels with work-groups.
    if (stores_narrow(device.traits()))
        for (const char* const type : {"Convolution2D", "Convolution2DBackwardData",
                                       "Convolution2DBackwardFilter", "InnerProduct", "MatMul"})
            options.engines.emplace_back(type,
                                         EngineRegistry::instance().of(type, false).back()->name());
    std::string text = small_network;
    const std::string loss = "\"loss\"]";
    if (heavy)
        text.replace(text.find(loss), loss.size(), R"({"name": "loss", "loss_weight": 1000}])");
    return make_net(device, text, options);
}

}  // namespace

TEST_CASE("a batch of inference is launches alone", "[counters]") {
    ON_EVERY_DEVICE(device) {
        for (const Mode mode : {Mode::inference, Mode::evaluation, Mode::training}) {
            INFO("mode " << static_cast<int>(mode));
            Net net = make_net(device, small_network, with_mode(mode));
            feed_small_network(net, 0);
            net.forward();
            check_step(cost(device, [&] { net.forward(); }));
            if (mode == Mode::inference) continue;
            net.backward();
            check_step(cost(device, [&] { net.backward(); }));
        }
    }
}

TEST_CASE("a training step is launches alone", "[counters]") {
    ON_EVERY_DEVICE(device) {
        for (const int accumulate : {1, 2}) {
            Net net = make_net(device, small_network, training());
            SolverOptions options{.clip_norm = 1, .accumulate = accumulate};
            Solver solver(net, options);
            feed_small_network(net, 0);
            for (int i = 0; i < 2 * accumulate; ++i) solver.step();
            for (int i = 0; i < accumulate; ++i) {
                check_step(cost(device, [&] {
                    solver.set_learning_rate(0.01 + i);
                    solver.step();
                }));
            }
            // A step that may be called off costs nothing more after the first one.
            for (int i = 0; i < accumulate; ++i) CHECK(solver.step_if([] { return true; }));
            check_step(cost(device, [&] { CHECK(solver.step_if([] { return true; })); }));
            // Feeding inputs adds no wait after the first time: each is sent on a second queue.
            for (unsigned i = 1; i < 3; ++i) {
                feed_small_network(net, i);
                solver.step();
            }
            const Counters fed = cost(device, [&] {
                feed_small_network(net, 3);
                solver.step();
            });
            check_lean(fed);
            CHECK(fed.flushes <= 3);
        }
    }
}

TEST_CASE("a training step in 16 bits is launches alone, its loss scale included",
          "[counters][counters_narrow]") {
    ON_EVERY_DEVICE(device) {
        for (const Precision precision : {Precision::fp16, Precision::bf16}) {
            // Gradients overflow at the first scale, and no longer after it has been halved several
            // times.
            for (const double scale : {0x1p127, 1024.0}) {
                const bool scaled = precision == Precision::fp16;
                const bool heavy = scale > 1e30, still = scaled && heavy;
                Net net = narrow_network(device, precision, heavy);
                SolverOptions options{.loss_scale = scale, .loss_scale_steps = 2};
                Solver solver(net, options);
                feed_small_network(net, 0);
                solver.step();
                const auto before = all_bits(net);
                const double from = solver.loss_scale();
                for (int i = 0; i < 3; ++i) check_step(cost(device, [&] { solver.step(); }));
                if (!scaled) {
                    CHECK(solver.loss_scale() == 1);
                } else if (heavy) {
                    CHECK(solver.loss_scale() == from / 8);  // every one of them overflowed
                } else {
                    CHECK(solver.loss_scale() == from * 4);
                }
                CHECK((bits(net.param("scores.0")) == before.at("scores.0")) == still);
                if (!still) continue;
                // During recovery there are steps of both kinds.
                int steps = 0;
                while (bits(net.param("scores.0")) == before.at("scores.0") && ++steps < 200)
                    check_step(cost(device, [&] { solver.step(); }));
                CHECK(steps < 200);
                for (int i = 0; i < 3; ++i) check_step(cost(device, [&] { solver.step(); }));
                for (const float value : net.param("scores.0").to_floats())
                    REQUIRE(std::isfinite(value));
            }
        }
    }
}

TEST_CASE("going back to a shape plans nothing anew", "[counters]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, small_network, training());
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
