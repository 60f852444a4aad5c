// SPDX-License-Identifier: MIT
// Inputs that are set while the device still works on earlier ones, and losses that are read late.
// The host waits for neither, and results have the same bits.
#include "net/training_set.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

SolverOptions with_momentum() {
    return {.kind = SolverOptions::Kind::sgd, .learning_rate = 0.05, .momentum = 0.9};
}

std::vector<float> images_of(Net& net, unsigned number) {
    return random_floats(static_cast<std::size_t>(net.input_shape("data").numel()), 500 + number);
}

/// Sets both inputs from memory that is overwritten as soon as that is allowed.
void feed_and_spoil(Net& net, unsigned number) {
    std::vector<float> images = images_of(net, number);
    set_floats(net, "data", images);
    std::fill(images.begin(), images.end(), 1e30f);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(net.input_shape("label")[0]));
    for (std::size_t i = 0; i < labels.size(); ++i)
        labels[i] = static_cast<std::int32_t>((i + number) % 5);
    set_labels(net, "label", labels);
    std::fill(labels.begin(), labels.end(), 0);
}

/// The same with copies that wait.
void feed_waiting(Net& net, unsigned number) {
    const std::vector<float> images = images_of(net, number);
    net.input("data").copy_from_host(images.data(), images.size() * sizeof(float));
    std::vector<std::int32_t> labels(static_cast<std::size_t>(net.input_shape("label")[0]));
    for (std::size_t i = 0; i < labels.size(); ++i)
        labels[i] = static_cast<std::int32_t>((i + number) % 5);
    net.input("label").copy_from_host(labels.data(), labels.size() * sizeof(std::int32_t));
    net.context().finish();
}

Net training_net(const Context& device, std::int64_t batch, Precision precision = Precision::fp32) {
    NetOptions options = training();
    options.batch = batch;
    options.precision = precision;
    return make_net(device, small_network, options);
}

void feed_poison(Net& net) {
    std::vector<float> poison = images_of(net, 77);
    poison[5] = std::numeric_limits<float>::quiet_NaN();
    set_floats(net, "data", poison);
}

}  // namespace

TEST_CASE("inputs fed without a wait give the bits of those that are waited for", "[feeding]") {
    ON_EVERY_DEVICE(device) {
        // A batch whose copy takes some time, and one whose copy is immediate.
        for (const std::int64_t batch : {256, 4}) {
            Net fast = training_net(device, batch), slow = training_net(device, batch);
            Solver first(fast, with_momentum()), second(slow, with_momentum());
            copy_params(slow, fast);
            for (unsigned i = 0; i < 12; ++i) {
                feed_and_spoil(fast, i);
                first.step();
            }
            for (unsigned i = 0; i < 12; ++i) {
                feed_waiting(slow, i);
                second.step();
            }
            CHECK((bits(fast.output("loss")) == bits(slow.output("loss"))));
            CHECK((all_bits(fast) == all_bits(slow)));
        }
    }
}

TEST_CASE("an input holds what it was set to last", "[feeding]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, small_network, with_mode(Mode::inference));
        for (unsigned i = 0; i < 7; ++i) {
            for (unsigned times = 0; times <= i; ++times) feed_and_spoil(net, 10 * i + times);
            CHECK(net.input("data").to_floats() == images_of(net, 11 * i));
            if (i % 2 == 1) net.forward();
        }
        // Copies of the tensor are ordered with it.
        feed_waiting(net, 3);
        CHECK(net.input("data").to_floats() == images_of(net, 3));
        feed_and_spoil(net, 4);
        CHECK(net.input("data").to_floats() == images_of(net, 4));
        // A net may be destroyed while its inputs are being copied.
        feed_and_spoil(net, 5);
        net.forward();
        feed_and_spoil(net, 6);
    }
}

TEST_CASE("the planned peak tells of inputs on their way", "[feeding]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, small_network, with_mode(Mode::inference));
        feed_and_spoil(net, 0);
        net.forward();
        const std::uint64_t peak = net.planned_peak_bytes(),
                            held = device.counters().allocated_bytes;
        for (unsigned i = 1; i < 4; ++i) feed_and_spoil(net, i);
        CHECK(net.planned_peak_bytes() - peak == device.counters().allocated_bytes - held);
        if (!device.traits().host)
            CHECK(net.planned_peak_bytes() - peak >= net.input("data").bytes());
    }
}

TEST_CASE("a step whose loss is found not finite late is called off", "[feeding]") {
    const Precision precision = GENERATE(Precision::fp32, Precision::fp16);
    const int accumulate = GENERATE(1, 2);
    const auto kind = GENERATE(SolverOptions::Kind::sgd, SolverOptions::Kind::adam);
    ON_EVERY_DEVICE(device) {
        SolverOptions options = with_momentum();
        options.kind = kind;
        options.accumulate = accumulate;
        options.loss_scale_steps = 2;
        Net waiting = training_net(device, 4, precision);
        Solver usual(waiting, options);
        options.guard_loss = true;
        Net net = training_net(device, 4, precision);
        Solver guarded(net, options);
        copy_params(waiting, net);
        for (unsigned i = 0; i < 5; ++i) {
            feed_and_spoil(waiting, i);
            usual.step();
            feed_and_spoil(net, i);
            guarded.step();
        }
        const auto before = all_bits(net);
        CHECK((all_bits(waiting) == before));

        feed_poison(waiting);
        CHECK_FALSE(
            usual.step_if([&] { return std::isfinite(waiting.output("loss").to_floats().at(0)); }));
        feed_poison(net);
        guarded.step();
        for (const std::string& name : net.param_names())
            if (net.is_trainable(name)) CHECK((bits(net.param(name)) == before.at(name)));
        feed_and_spoil(net, 9);
        guarded.step();
        for (const std::string& name : net.param_names())
            if (net.is_trainable(name)) CHECK((bits(net.param(name)) == before.at(name)));
        guarded.call_off(2);
        CHECK((all_bits(net) == before));
        CHECK(guarded.steps() == usual.steps());
        feed_poison(net);
        CHECK(net.first_nan() == "conv");

        // It continues with the bits of a run that saw the loss in time.
        for (unsigned i = 9; i < 14; ++i) {
            feed_and_spoil(waiting, i);
            usual.step();
            feed_and_spoil(net, i);
            guarded.step();
        }
        CHECK((all_bits(net) == all_bits(waiting)));
        CHECK(guarded.steps() == usual.steps());
        CHECK(guarded.loss_scale() == usual.loss_scale());
        check_error(ErrorKind::invalid_argument, {"call_off", "3"}, [&] { guarded.call_off(3); });
        check_error(ErrorKind::invalid_argument, {"guard_loss"}, [&] { usual.call_off(1); });
    }
}

TEST_CASE("training from files waits once a batch at most, and for the step before", "[feeding]") {
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        write_training_set(folder);
        TrainCall call{.config = folder.file("train.json"), .out = folder.file("out")};
        std::vector<Counters> seen;
        call.progress = [&](const TrainProgress& progress) {
            if (progress.epoch == 2 && !progress.epoch_done) seen.push_back(device.counters());
        };
        train(device, call);
        REQUIRE(seen.size() == 16);
        // The last batch of an epoch is examined although no other batch follows.
        for (std::size_t i = 1; i + 1 < seen.size(); ++i) {
            CHECK(seen[i].waits - seen[i - 1].waits <= 1);
            CHECK(seen[i].allocations == seen[i - 1].allocations);
            CHECK(seen[i].launches > seen[i - 1].launches);
        }
    }
}
