// SPDX-License-Identifier: MIT
// A net with other batch sizes and shapes, and after its weights were written from outside.
#include "api/net_impl.hpp"
#include "net/support.hpp"
#include "runtime/access.hpp"

#include <algorithm>
#include <cstddef>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// Forward pass of the batch of that number. With a batch size of 2, its first two samples.
std::vector<float> scores(Net& net, unsigned number = 0) {
    const auto images = static_cast<std::size_t>(net.input_shape("data").numel());
    auto data = random_floats(4 * 3 * 8 * 8, 100 + number);
    data.resize(images);
    set_floats(net, "data", data);
    net.input("label").fill(0);
    net.forward();
    return net.output("scores").to_floats();
}

void fill_inputs(Net& net) {
    for (const std::string& name : net.input_names()) net.input(name).fill(0);
}

std::vector<float> first_half(std::vector<float> values) {
    values.resize(values.size() / 2);
    return values;
}

}  // namespace

TEST_CASE("another batch size and back gives the same bits", "[reshape]") {
    ON_EVERY_DEVICE(device) {
        for (const Mode mode : {Mode::inference, Mode::evaluation}) {
            Net net = make_net(device, small_network, with_mode(mode));
            const auto whole = scores(net);
            const auto params = all_bits(net);
            net.reshape(2);
            CHECK(net.input_shape("data") == Shape{2, 3, 8, 8});
            CHECK(net.input_shape("label") == Shape{2});
            check_close(scores(net), doubles(first_half(whole)), 1e-5);
            CHECK(net.output("scores").shape() == Shape{2, 5});
            net.reshape(4);
            CHECK((scores(net) == whole));
            CHECK((all_bits(net) == params));
        }
    }
}

TEST_CASE("training goes on over batches of other sizes", "[reshape]") {
    ON_EVERY_DEVICE(device) {
        // Momentum and running statistics carry over: the result equals that of two nets that pass
        // them on.
        const auto train = [&](bool detour) {
            Net net = make_net(device, small_network, training());
            Solver solver(net, {});
            for (unsigned step = 0; step < 6; ++step) {
                if (detour && step % 2 == 1) {
                    net.reshape(7);  // planned and fed, but no step is run
                    feed_small_network(net, 50 + step);
                    net.prepare();
                }
                net.reshape(step < 3 ? 4 : 2);
                feed_small_network(net, step);
                solver.step();
            }
            CHECK(solver.steps() == 6);
            return all_bits(net);
        };
        CHECK((train(true) == train(false)));
    }
}

TEST_CASE("reshape keeps what it is not told", "[reshape]") {
    ON_EVERY_DEVICE(device) {
        NetOptions options;
        options.input_shapes["data"] = Shape{4, 3, 10, 10};
        const char* const pooled = R"({
          "inputs": [{"name": "data", "shape": [4, 3, 8, 8]}, {"name": "other", "shape": [4, 3]}],
          "outputs": ["y"],
          "operators": [
            {"name": "pool", "type": "GlobalPooling", "inputs": ["data"], "outputs": ["pool"]},
            {"name": "flat", "type": "Flatten", "inputs": ["pool"], "outputs": ["flat"]},
            {"name": "sum", "type": "Elementwise", "inputs": ["flat", "other"],
             "outputs": ["y"]}]})";
        Net net = make_net(device, pooled, options);
        net.reshape(6);
        CHECK(net.input_shape("data") == Shape{6, 3, 10, 10});
        CHECK(net.input_shape("other") == Shape{6, 3});
        net.reshape({{"data", Shape{6, 3, 5, 7}}});
        CHECK(net.input_shape("data") == Shape{6, 3, 5, 7});
        CHECK(net.input_shape("other") == Shape{6, 3});
        fill_inputs(net);
        net.forward();
        CHECK(net.output("y").shape() == Shape{6, 3});

        // Invalid shapes are refused, and the net stays unchanged.
        check_error(ErrorKind::invalid_argument, {"batch", "0"}, [&] { net.reshape(0); });
        check_error(ErrorKind::invalid_argument, {"batch", "-3"}, [&] { net.reshape(-3); });
        check_error(ErrorKind::invalid_argument, {"[6, 3]", "[6, 4]"}, [&] {
            net.reshape({{"other", Shape{6, 4}}});
        });
        check_error(ErrorKind::invalid_argument, {"'dat'", "'data'"}, [&] {
            net.reshape({{"dat", Shape{6, 4}}});
        });
        CHECK(net.input_shape("other") == Shape{6, 3});
        fill_inputs(net);
        net.forward();
        CHECK(net.output("y").shape() == Shape{6, 3});
        net.reshape(3);
        fill_inputs(net);
        net.forward();
        CHECK(net.output("y").shape() == Shape{3, 3});
    }
}

TEST_CASE("a reshape under which parameters would have other shapes is refused", "[reshape]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, small_network, training());
        const auto before = all_bits(net);
        check_error(ErrorKind::invalid_argument, {"parameter", "input_shapes"}, [&] {
            net.reshape({{"data", Shape{4, 5, 8, 8}}});
        });
        CHECK(net.input_shape("data") == Shape{4, 3, 8, 8});
        feed_small_network(net, 0);
        net.forward();
        CHECK(net.output("loss").to_floats().at(0) > 0);
        CHECK(net.param_shape("conv.0") == net.param("conv.0").shape());
    }
}

TEST_CASE("weights written from outside are seen after params_changed", "[reshape]") {
    ON_EVERY_DEVICE(device) {
        for (const Mode mode : {Mode::inference, Mode::evaluation, Mode::training}) {
            INFO("mode " << static_cast<int>(mode));
            // Dropout would differ from step to step.
            std::string json = small_network;
            json.replace(json.find("\"type\": \"Dropout\""), 17, "\"type\": \"Abs\"");
            Net net = make_net(device, json, with_mode(mode));
            const auto before = scores(net);
            net.reshape(2);
            scores(net);  // a second plan, which reads what the first has packed
            net.reshape(4);
            std::map<std::string, std::vector<float>> values;
            unsigned seed = 500;
            for (const std::string& name : net.param_names()) {
                const auto count = static_cast<std::size_t>(net.param_shape(name).numel());
                values[name] = random_floats(count, ++seed, 0.5, 1.5);
                net.param(name).copy_from(values[name]);
            }
            net.params_changed();
            const auto after = scores(net);
            CHECK((after != before));
            // A net that had these weights from the start.
            Net fresh = make_net(device, json, with_mode(mode));
            for (const auto& [name, data] : values) fresh.param(name).copy_from(data);
            fresh.params_changed();
            CHECK((scores(fresh) == after));
            net.reshape(2);
            fresh.reshape(2);
            CHECK((scores(net) == scores(fresh)));
        }
    }
}

namespace {

/// How many steps the current plan's setup has, and how many of them it leaves to another plan.
std::pair<std::size_t, std::ptrdiff_t> setup_of(Net& net) {
    const Plan& plan = Access::impl(net).built().executor->plan();
    return {plan.setup.size(), std::count(plan.setup_found.begin(), plan.setup_found.end(), 1)};
}

/// The scores of a net that has had no other plan, with the same parameters.
std::vector<float> fresh_scores(Net& net, std::int64_t batch) {
    NetOptions options = with_mode(Mode::inference);
    options.batch = batch;
    Net fresh = make_net(net.context(), small_network, options);
    for (const std::string& name : net.param_names()) {
        HostTensor value = net.read_param(name);
        fresh.param(name).copy_from_host(value.data.data(), value.data.size());
    }
    fresh.params_changed();
    return scores(fresh);
}

}  // namespace

TEST_CASE("plans of other batches read what the first has packed", "[reshape]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, small_network, with_mode(Mode::inference));
        scores(net);
        const auto [steps, found] = setup_of(net);
        CHECK(steps > 0);
        CHECK(found == 0);
        for (const std::int64_t batch : {3, 2, 5}) {
            net.reshape(batch);
            CHECK((scores(net) == fresh_scores(net, batch)));
            // Engines that are chosen by the batch may want other forms of some parameters.
            CHECK(setup_of(net).second > 0);
        }
        // All forget what was made of former values, and a plan that comes later does not find it.
        net.param("conv.0").fill(0.125f);
        net.params_changed();
        for (const std::int64_t batch : {2, 6, 4, 2, 5, 6}) {
            net.reshape(batch);
            CHECK((scores(net) == fresh_scores(net, batch)));
        }
    }
}

TEST_CASE("two hundred batches of inference take the memory of the largest", "[reshape]") {
    const Context device("cpu");
    Net net = make_net(device, small_network, with_mode(Mode::inference));
    const auto live_at = [&](std::int64_t batch) {
        net.reshape(batch);
        scores(net);
        return device.memory().live;
    };
    const std::uint64_t one = live_at(201);
    std::uint64_t own = 0;  // inputs and outputs of the other plans
    for (std::int64_t batch = 1; batch <= 200; ++batch) {
        live_at(batch);
        for (const std::string& name : net.input_names()) own += net.input(name).bytes();
        own += net.output("scores").bytes() + net.output("loss").bytes();
    }
    CHECK(live_at(1) - one < own + 200 * 1024);
}
