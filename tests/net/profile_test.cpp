// SPDX-License-Identifier: MIT
// Profiling measures and changes nothing: all bits that outlast a run are unchanged, and training
// continues as if nobody had profiled.
#include "api/net_impl.hpp"
#include "net/support.hpp"
#include "runtime/access.hpp"

#include <limits>
#include <memory>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// What outlasts a run: blocks of memory, and gradients.
std::map<std::string, Bytes> everything(Net& net) {
    const Executor& executor = *Access::impl(net).built().executor;
    const Plan& plan = executor.plan();
    std::map<std::string, Bytes> all;
    for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
        const Block& block = plan.blocks[i];
        if (block.is_constants()) continue;
        Bytes& bytes = all["block " + block.name];
        bytes.resize(block.bytes);
        executor.read({Place::Kind::block, static_cast<int>(i), 0}, bytes.data(), bytes.size());
    }
    for (const std::string& name : net.gradient_names())
        all["gradient " + name] = bits(net.gradient(name));
    return all;
}

void check_same(const std::map<std::string, Bytes>& found,
                const std::map<std::string, Bytes>& expected) {
    REQUIRE(found.size() == expected.size());
    for (const auto& [name, bytes] : expected) {
        INFO(name);
        CHECK((found.at(name) == bytes));
    }
}

void check_profile_changes_nothing(Net& net) {
    for (const bool whole_step : {false, true}) {
        const auto before = everything(net);
        double ms = 0;
        for (const NodeReport& node : net.profile(whole_step)) ms += node.ms;
        CHECK(ms > 0);
        check_same(everything(net), before);
    }
}

struct Run {
    Net net;
    std::unique_ptr<Solver> solver;
    Run(const Context& device, Precision precision, const SolverOptions& how)
        : net(make(device, precision)), solver(std::make_unique<Solver>(net, how)) {}
    static Net make(const Context& device, Precision precision) {
        NetOptions options = training(5);
        options.precision = precision;
        options.input_gradients = true;
        return make_net(device, small_network, options);
    }
    void step(unsigned number) {
        feed_small_network(net, number);
        solver->step();
    }
};

SolverOptions solver_of(SolverOptions::Kind kind) {
    SolverOptions how{.kind = kind, .learning_rate = 0.01, .weight_decay = 0.1};
    if (kind == SolverOptions::Kind::sgd) how.momentum = 0.9;
    return how;
}

void check_training_goes_on(const Context& device, Precision precision, const SolverOptions& how) {
    Run profiled(device, precision, how), plain(device, precision, how);
    unsigned number = 0;
    feed_small_network(profiled.net, number);
    check_profile_changes_nothing(profiled.net);
    for (const int steps : {1, 2, 2}) {
        for (int i = 0; i < steps; ++i, ++number) {
            profiled.step(number);
            plain.step(number);
            CHECK((bits(profiled.net.output("loss")) == bits(plain.net.output("loss"))));
        }
        check_profile_changes_nothing(profiled.net);
        check_same(everything(profiled.net), everything(plain.net));
    }
    CHECK(profiled.solver->steps() == plain.solver->steps());
    CHECK(profiled.solver->loss_scale() == plain.solver->loss_scale());
}

}  // namespace

TEST_CASE("profiling leaves training as it was", "[profile]") {
    using Kind = SolverOptions::Kind;
    ON_EVERY_DEVICE(device) {
        for (const Kind kind : {Kind::sgd, Kind::adam, Kind::adamw}) {
            INFO("solver " << static_cast<int>(kind));
            check_training_goes_on(device, Precision::fp32, solver_of(kind));
        }
        SolverOptions scaled = solver_of(Kind::adam);
        scaled.loss_scale_steps = 2;
        scaled.accumulate = 2;
        INFO("Adam with a loss scale and two batches an update");
        check_training_goes_on(device, Precision::fp16, scaled);
    }
}

TEST_CASE("profiling between a bad loss and its call_off changes nothing", "[profile]") {
    ON_EVERY_DEVICE(device) {
        SolverOptions how = solver_of(SolverOptions::Kind::adam);
        how.guard_loss = true;
        Run profiled(device, Precision::fp32, how), plain(device, Precision::fp32, how);
        for (Run* run : {&profiled, &plain}) {
            run->step(0);
            std::vector<float> images(4 * 3 * 8 * 8, std::numeric_limits<float>::quiet_NaN());
            set_floats(run->net, "data", images);
            run->solver->step();
            if (run == &profiled) check_profile_changes_nothing(run->net);
            run->step(2);
            if (run == &profiled) check_profile_changes_nothing(run->net);
            run->solver->call_off(2);
            run->step(3);
        }
        check_same(everything(profiled.net), everything(plain.net));
    }
}

TEST_CASE("a profile leaves nothing for backward to go on from", "[profile]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, small_network, with_mode(Mode::evaluation));
        feed_small_network(net, 0);
        net.forward();
        net.backward();
        const auto before = everything(net);
        net.forward();
        check_profile_changes_nothing(net);
        check_error(ErrorKind::invalid_argument, {"backward", "forward"}, [&] { net.backward(); });
        net.forward();
        net.backward();
        check_same(everything(net), before);
    }
}
