// SPDX-License-Identifier: MIT
// What a net owns and for how long: parameters without values, moves, solvers that outlive their
// net, and plans that are dropped.
#include "net/support.hpp"

#include <optional>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

SolverOptions adam() {
    return {.learning_rate = 0.01};
}

}  // namespace

TEST_CASE("parameters must be set before a run", "[lifetime]") {
    const std::vector<std::string> words{"'conv.0'", "initialize()", "load_weights()", "param()"};
    const auto with = [&](std::string call) {
        std::vector<std::string> all = words;
        all.push_back(std::move(call));
        return all;
    };
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        Net net = Net::from_json(device, small_network, training());
        net.prepare();
        feed_small_network(net, 0);
        check_error(invalid, with("forward()"), [&] { net.forward(); });
        check_error(invalid, with("profile()"), [&] { net.profile(true); });
        check_error(invalid, with("first_nan()"), [&] { net.first_nan(); });
        check_error(invalid, with("save_weights()"),
                    [&] { net.save_weights(folder.file("w.h5")); });
        Solver solver(net, adam());
        check_error(invalid, with("step()"), [&] { solver.step(); });
        check_error(invalid, with("save_checkpoint()"),
                    [&] { solver.save_checkpoint(folder.file("c.h5")); });
        CHECK(solver.steps() == 0);
        CHECK(std::filesystem::is_empty(folder.path()));
        net.initialize();
        feed_small_network(net, 0);
        solver.step();
        CHECK(solver.steps() == 1);
    }
}

TEST_CASE("parameters that were set by hand count as set", "[lifetime]") {
    ON_EVERY_DEVICE(device) {
        Net from = make_net(device, small_network);
        for (const Mode mode : {Mode::inference, Mode::training}) {
            NetOptions options = with_mode(mode);
            options.backward = false;
            Net net = Net::from_json(device, small_network, options);
            feed_small_network(net, 0);
            const std::vector<std::string> names = net.param_names();
            for (const std::string& name : names) {
                check_error(invalid, {"'" + name + "'"}, [&] { net.forward(); });
                for (const float value : net.param(name).to_floats()) REQUIRE(value == 0);
                const Bytes bytes = bits(from.param(name));
                net.param(name).copy_from_host(bytes.data(), bytes.size());
            }
            net.forward();
            CHECK((all_bits(net).at("scores.0") == all_bits(from).at("scores.0")));
            if (mode != Mode::inference) continue;
            feed_small_network(from, 0);
            from.forward();
            CHECK((bits(net.output("scores")) == bits(from.output("scores"))));
        }
    }
}

TEST_CASE("a large parameter that nobody has set holds zeros", "[lifetime]") {
    ON_EVERY_DEVICE(device) {
        Net net = Net::from_json(device, R"({
          "inputs": [{"name": "x", "shape": [2, 256]}], "outputs": ["y"],
          "operators": [{"name": "y", "type": "InnerProduct", "inputs": ["x"], "outputs": ["y"],
                         "options": {"outputs": 256}}]})");
        set_floats(net, "x", random_floats(512, 1));
        CHECK(net.param("y.0").to_floats() == std::vector<float>(256 * 256, 0));
        check_error(invalid, {"'y.1'"}, [&] { net.forward(); });
        net.param("y.1").fill(3);
        net.forward();
        CHECK(net.output("y").to_floats() == std::vector<float>(512, 3));
        net.initialize();
        net.forward();
        CHECK(net.output("y").to_floats() != std::vector<float>(512, 3));
    }
}

TEST_CASE("a net without parameters just runs", "[lifetime]") {
    ON_EVERY_DEVICE(device) {
        Net net = Net::from_json(device, R"({
          "inputs": [{"name": "x", "shape": [4]}], "outputs": ["y"],
          "operators": [{"name": "y", "type": "Activation", "inputs": ["x"], "outputs": ["y"],
                         "options": {"activation": "relu"}}]})");
        set_floats(net, "x", {-1, 2, -3, 4});
        net.forward();
        CHECK(net.output("y").to_floats() == std::vector<float>{0, 2, 0, 4});
    }
}

TEST_CASE("null pointers are errors", "[lifetime]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, small_network);
        feed_small_network(net, 0);
        net.forward();
        const Bytes before = bits(net.output("scores"));
        const std::uint64_t bytes = net.input("data").bytes();
        check_error(invalid, {"'data'", "null"}, [&] { net.set_input("data", nullptr, bytes); });
        check_error(invalid, {"'label'", "null"}, [&] { net.set_input("label", nullptr, 16); });
        check_error(invalid, {"'data'", "3072"}, [&] { net.set_input("data", nullptr, 0); });
        net.forward();
        CHECK((bits(net.output("scores")) == before));

        Tensor tensor(device, Shape{2, 3}, {1, 2, 3, 4, 5, 6});
        Tensor turned = tensor.transpose(0, 1);
        for (Tensor* view : {&tensor, &turned}) {
            check_error(invalid, {"null"}, [&] { view->copy_from_host(nullptr, 24); });
            check_error(invalid, {"null"}, [&] { view->copy_to_host(nullptr, 24); });
        }
        CHECK(tensor.to_floats() == std::vector<float>{1, 2, 3, 4, 5, 6});
        Tensor none(device, Shape{0, 3});
        none.copy_from_host(nullptr, 0);
        none.copy_to_host(nullptr, 0);
        if (device.traits().host) {
            check_error(invalid, {"null"}, [&] { Tensor::wrap_host(device, nullptr, Shape{2}); });
            CHECK(Tensor::wrap_host(device, nullptr, Shape{0}).bytes() == 0);
        } else {
            check_error(invalid, {"null"},
                        [&] { Tensor::wrap_opencl(device, nullptr, 0, Shape{2}); });
        }
        check_error(invalid, {"undefined"}, [] { Tensor().context(); });
        const Folder folder;
        const std::string file = folder.file("t.h5");
        check_error(invalid, {"'x'", "8"}, [&] {
            save_tensors(file, {{"x", {Shape{2}, DType::f32, {}}}});
        });
    }
}

TEST_CASE("a solver goes on with a net that is moved", "[lifetime]") {
    ON_EVERY_DEVICE(device) {
        Net still = make_net(device, small_network, training());
        Net from = make_net(device, small_network, training());
        Solver expected(still, adam()), solver(from, adam());
        const auto step = [](Net& net, Solver& by, unsigned number) {
            feed_small_network(net, number);
            by.step();
        };
        step(still, expected, 0);
        step(from, solver, 0);
        Net to = std::move(from);
        step(still, expected, 1);
        step(to, solver, 1);
        CHECK((all_bits(to) == all_bits(still)));
        // Move into a net that has a network of its own, which is destroyed.
        Net other = make_net(device, small_network, training(9));
        other = std::move(to);
        step(still, expected, 2);
        step(other, solver, 2);
        CHECK((all_bits(other) == all_bits(still)));
        const Folder folder;
        solver.save_checkpoint(folder.file("c.h5"));
        step(other, solver, 3);
        solver.load_checkpoint(folder.file("c.h5"));
        CHECK((all_bits(other) == all_bits(still)));

        for (Net* gone : {&from, &to}) {
            check_error(invalid, {"moved"}, [&] { gone->forward(); });
            check_error(invalid, {"moved"}, [&] { gone->context(); });
            check_error(invalid, {"moved"}, [&] { gone->param_names(); });
            check_error(invalid, {"moved"}, [&] { gone->reshape(2); });
            check_error(invalid, {"moved"}, [&] { feed_small_network(*gone, 0); });
            check_error(invalid, {"moved"}, [&] { gone->load_weights(folder.file("c.h5")); });
            check_error(invalid, {"moved"}, [&] { gone->save_weights(folder.file("w.h5")); });
            check_error(invalid, {"moved"}, [&] { const Solver none(*gone, adam()); });
        }
    }
}

TEST_CASE("a solver keeps the network of a net that is gone", "[lifetime]") {
    ON_EVERY_DEVICE(device) {
        Net still = make_net(device, small_network, training());
        Solver expected(still, adam());
        feed_small_network(still, 0);
        std::optional<Net> net(make_net(device, small_network, training()));
        Solver solver(*net, adam());
        feed_small_network(*net, 0);
        const Tensor weight = net->param("conv.0");
        net.reset();
        for (int i = 0; i < 2; ++i) {
            expected.step();
            solver.step();
        }
        CHECK(solver.steps() == 2);
        CHECK((bits(weight) == bits(still.param("conv.0"))));
    }
}

TEST_CASE("plans are dropped, parameters and states are not", "[lifetime]") {
    ON_EVERY_DEVICE(device) {
        NetOptions options = training();
        check_error(invalid, {"max_plans"}, [&] {
            options.max_plans = 0;
            Net::from_json(device, small_network, options);
        });
        options.max_plans = 8;
        Net all = make_net(device, small_network, options);
        options.max_plans = 2;
        Net few = make_net(device, small_network, options);
        Solver expected(all, adam()), solver(few, adam());
        // Nothing waits in between: a plan may be destroyed while its launches are running.
        unsigned number = 0;
        for (const std::int64_t batch : {4, 2, 6, 4, 3, 2, 4, 5, 6, 4}) {
            for (int i = 0; i < 2; ++i, ++number) {
                for (Net* net : {&all, &few}) {
                    net->reshape(batch);
                    feed_small_network(*net, number);
                }
                expected.step();
                solver.step();
            }
        }
        CHECK((all_bits(few) == all_bits(all)));
        CHECK((bits(few.output("loss")) == bits(all.output("loss"))));
        // Shapes whose plan was dropped are planned again.
        few.reshape(2);
        check_error(invalid, {"backward", "forward"}, [&] { few.backward(); });
        CHECK(few.input("data").to_floats() == std::vector<float>(2 * 3 * 8 * 8, 0));
    }
}

TEST_CASE("the plan that was used least recently goes first", "[lifetime]") {
    ON_EVERY_DEVICE(device) {
        NetOptions options = with_mode(Mode::evaluation);
        options.max_plans = 2;
        Net net = make_net(device, small_network, options);
        const auto run = [&](std::int64_t batch) {
            net.reshape(batch);
            feed_small_network(net, 0);
            net.forward();
        };
        run(4);
        run(2);
        run(4);
        run(3);  // replaces the plan for 2
        net.reshape(4);
        net.backward();
        net.reshape(2);
        check_error(invalid, {"backward", "forward"}, [&] { net.backward(); });
    }
}

TEST_CASE("memory does not grow with the shapes that a net has seen", "[lifetime]") {
    ON_EVERY_DEVICE(device) {
        NetOptions options = with_mode(Mode::inference);
        options.max_plans = 1;
        Net net = make_net(device, small_network, options);
        const auto bytes_at = [&](std::int64_t batch) {
            net.reshape(batch);
            feed_small_network(net, 0);
            net.forward();
            device.finish();
            return device.counters().allocated_bytes;
        };
        bytes_at(16);
        const std::uint64_t before = bytes_at(32);
        for (const std::int64_t batch : {8, 9, 10, 11, 12, 32}) bytes_at(batch);
        CHECK(device.counters().allocated_bytes <= before);
    }
}
