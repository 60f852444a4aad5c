// SPDX-License-Identifier: MIT
// Mistakes of a program: each is an Error whose message names what is wrong, and the object keeps
// working as if nothing had been called.
#include "net/support.hpp"

#include <limits>

using namespace dlprim;
using namespace dlprim::testing;

TEST_CASE("a net refuses names that it does not have", "[errors]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, small_network, training());
        const auto missing = ErrorKind::not_found;
        check_error(missing, {"input", "'dat'", "'data'"}, [&] { net.input("dat"); });
        check_error(missing, {"output", "'score'", "'scores'"}, [&] { net.output("score"); });
        check_error(missing, {"parameter", "'conv.2'", "'conv.0'"}, [&] { net.param("conv.2"); });
        check_error(missing, {"parameter", "'nothing'"}, [&] { net.param_shape("nothing"); });
        check_error(missing, {"input", "'labels'", "'label'"}, [&] { net.input_shape("labels"); });
        check_error(missing, {"input", "'labels'"}, [&] { net.input_dtype("labels"); });
        check_error(missing, {"gradient of", "'bn.0'"}, [&] { net.gradient("bn.0"); });
        check_error(missing, {"gradient of", "'data'"}, [&] { net.gradient("data"); });
        check_error(missing, {"output gradient", "'scores'"},
                    [&] { net.output_gradient("scores"); });
        CHECK_FALSE(net.is_trainable("nothing"));
        CHECK(net.label_classes("nothing") == 0);
        feed_small_network(net, 0);
        net.forward();
        net.backward();
        CHECK(net.output("loss").to_floats().at(0) > 0);
    }
}

TEST_CASE("inputs are checked for size and labels for range", "[errors]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, small_network);
        feed_small_network(net, 0);
        net.forward();
        const auto before = bits(net.output("loss"));
        const std::vector<float> data(10);
        check_error(invalid, {"'data'", "[4, 3, 8, 8]", "3072", "40"},
                    [&] { set_floats(net, "data", data); });
        check_error(invalid, {"'label'", "5", "position 2", "0 to 4"}, [&] {
            set_labels(net, "label", {0, 1, 5, 2});
        });
        check_error(invalid, {"'label'", "-1"}, [&] { set_labels(net, "label", {-1, 1, 5, 2}); });
        net.forward();
        CHECK((bits(net.output("loss")) == before));
    }
}

TEST_CASE("what a mode does not offer is refused", "[errors]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, small_network);
        check_error(invalid, {"backward", "evaluation or training"}, [&] { net.backward(); });
        check_error(invalid, {"solver", "training"}, [&] { const Solver solver(net, {}); });
        feed_small_network(net, 0);
        net.forward();
        check_error(invalid, {"'glorot'", "xavier"}, [&] { net.initialize("glorot"); });
        net.forward();
        CHECK(net.output("scores").to_floats().size() == 20);
        NetOptions negative{.batch = -2};
        check_error(invalid, {"batch", "-2"}, [&] { make_net(device, small_network, negative); });
    }
}

TEST_CASE("a net is usable in any order of calls", "[errors]") {
    ON_EVERY_DEVICE(device) {
        // Nothing has been prepared or fed.
        Net net = make_net(device, small_network, training());
        check_error(invalid, {"backward", "forward"}, [&] { net.backward(); });
        check_error(invalid, {"'data', 'label'", "set_input()"}, [&] { net.forward(); });
        check_error(invalid, {"'loss'", "before a forward"}, [&] { net.output("loss"); });
        CHECK(net.input("data").to_floats() == std::vector<float>(4 * 3 * 8 * 8, 0));
        CHECK(net.gradient("conv.0").to_floats() == std::vector<float>(8 * 3 * 9, 0));
        check_error(invalid, {"'label' was never set"}, [&] { net.forward(); });
        set_labels(net, "label", {0, 0, 0, 0});
        net.forward();
        net.backward();
        CHECK(net.output("loss").to_floats().at(0) > 0);
        net.reshape(2);
        check_error(invalid, {"backward", "forward"}, [&] { net.backward(); });
        net.reshape(4);
        net.backward();
        Solver solver(net, {});
        check_error(invalid, {"backward", "forward"}, [&] { net.backward(); });
        check_error(invalid, {"step()", "'data', 'label'"}, [&] { solver.step(); });
        feed_small_network(net, 0);
        solver.step();
        Net moved = std::move(net);
        feed_small_network(moved, 0);
        moved.forward();
        CHECK(moved.output("loss").to_floats().at(0) > 0);
    }
}

TEST_CASE("a solver refuses constants that make no sense", "[errors]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, small_network, training());
        const auto refused = [&](const char* word, auto&& change) {
            SolverOptions options;
            change(options);
            check_error(invalid, {word}, [&] { const Solver solver(net, options); });
        };
        constexpr double nan = std::numeric_limits<double>::quiet_NaN();
        refused("learning rate", [](SolverOptions& o) { o.learning_rate = -1; });
        refused("learning rate", [](SolverOptions& o) { o.learning_rate = nan; });
        refused("momentum", [](SolverOptions& o) { o.momentum = -0.5; });
        refused("momentum", [](SolverOptions& o) { o.momentum = nan; });
        refused("weight_decay", [](SolverOptions& o) { o.weight_decay = -0.5; });
        refused("beta1", [](SolverOptions& o) { o.beta1 = 1; });
        refused("beta2", [](SolverOptions& o) { o.beta2 = nan; });
        refused("epsilon", [](SolverOptions& o) { o.epsilon = 0; });
        refused("momentum", [](SolverOptions& o) { o.nesterov = true; });
        refused("accumulate", [](SolverOptions& o) { o.accumulate = 0; });
        refused("clip", [](SolverOptions& o) { o.clip_norm = nan; });
        refused("clip", [](SolverOptions& o) { o.clip_value = -1; });
        // Parameters that no solver can train are refused instead of being left unchanged.
        Net mixed = make_net(device, R"({
          "inputs": [{"name": "data", "shape": [2, 3]}], "outputs": ["p", "loss"],
          "operators": [
            {"name": "p", "type": "Parameter", "inputs": [], "outputs": ["p"],
             "options": {"shape": [3], "dtype": "half"}},
            {"name": "sum", "type": "Reduction", "inputs": ["data"], "outputs": ["loss"]}]})",
                             training());
        check_error(ErrorKind::unsupported, {"'p.0'", "half"},
                    [&] { const Solver none(mixed, {}); });

        Solver solver(net, {});
        check_error(invalid, {"'a,b'", "comma"}, [&] {
            solver.save_checkpoint("unused.h5", {{"a,b", 1}});
        });
        check_error(invalid, {"learning rate"}, [&] { solver.set_learning_rate(nan); });
        check_error(invalid, {"learning rate"}, [&] { solver.set_learning_rate(-0.1); });
        CHECK(solver.learning_rate() == 1e-3);
        feed_small_network(net, 0);
        solver.step();
        CHECK(solver.steps() == 1);
    }
}

TEST_CASE("tensors are checked before memory is touched", "[errors]") {
    ON_EVERY_DEVICE(device) {
        Tensor tensor(device, Shape{2, 3});
        tensor.fill(1);
        check_error(invalid, {"[2, 3]", "24", "20"}, [&] {
            const std::vector<float> five(5);
            tensor.copy_from_host(five.data(), 20);
        });
        check_error(invalid, {"[2, 3]"}, [&] { tensor.copy_from({1, 2}); });
        check_error(invalid, {"[2, 3]", "[7]"}, [&] { tensor.reshape(Shape{7}); });
        check_error(invalid, {"[2, 3]", "4"}, [&] { tensor.slice(1, 0, 4); });
        check_error(invalid, {"[2, 3]", "5"}, [&] { tensor.transpose(0, 5); });
        check_error(invalid, {"undefined"}, [&] { Tensor().to_floats(); });
        check_error(ErrorKind::out_of_memory, {device.info().id, "MiB"}, [&] {
            const Tensor huge(device, Shape{1 << 30, 1 << 20});
        });
        CHECK(tensor.to_floats() == std::vector<float>(6, 1));
    }
}

TEST_CASE("eager calls check what they are given", "[errors]") {
    ON_EVERY_DEVICE(device) {
        const Context other(device.info().id);
        const char* const how = R"({"outputs": 4})";
        const Tensor x(device, Shape{2, 3}, random_floats(6, 1));
        const Tensor weight(device, Shape{4, 3}, random_floats(12, 2)),
            bias(device, Shape{4}, random_floats(4, 3));
        const Tensor integers(device, Shape{2, 3}, DType::i32);
        const std::string type = "InnerProduct";
        const auto call = [&](const std::vector<Tensor>& inputs, const std::vector<Tensor>& params,
                              const ops::CallOptions& options = {}) {
            return ops::call(type, how, inputs, params, options);
        };
        const Tensor y = call({x}, {weight, bias}).at(0);
        const auto before = bits(y);

        check_error(invalid, {"'InnerProdukt'", "'InnerProduct'"}, [&] {
            ops::call("InnerProdukt", how, {x}, {weight, bias});
        });
        check_error(invalid, {type, "'output'", "'outputs'"}, [&] {
            ops::call(type, R"({"output": 4})", {x}, {weight, bias});
        });
        CHECK_THROWS_AS(ops::call(type, "{\"outputs\": ", {x}, {weight, bias}), Error);
        check_error(invalid, {type, "0 inputs"}, [&] { call({}, {weight, bias}); });
        check_error(invalid, {type, "3 inputs"}, [&] { call({x, x, x}, {weight, bias}); });
        check_error(invalid, {type, "2 parameters", "got 1"}, [&] { call({x}, {weight}); });
        check_error(invalid, {type, "[4, 3]", "[4]"}, [&] { call({x}, {bias, bias}); });
        check_error(invalid, {type, "parameter 1", "int32"}, [&] {
            call({x}, {weight, Tensor(device, Shape{4}, DType::i32)});
        });
        CHECK_THROWS_AS(call({integers}, {weight, bias}), Error);
        check_error(invalid, {type, "empty"}, [&] { call({Tensor()}, {weight, bias}); });
        check_error(invalid, {type, "contexts"}, [&] {
            call({Tensor(other, Shape{2, 3})}, {weight, bias});
        });

        ops::CallOptions out{.out = {Tensor(device, Shape{2, 5})}};
        check_error(invalid, {type, "out", "[2, 5]", "[2, 4]"}, [&] {
            call({x}, {weight, bias}, out);
        });
        out.out = {Tensor(other, Shape{2, 4})};
        check_error(invalid, {type, "contexts"}, [&] { call({x}, {weight, bias}, out); });
        out.out = {Tensor(), Tensor()};
        check_error(invalid, {type, "out"}, [&] { call({x}, {weight, bias}, out); });
        out.out = {Tensor(device, Shape{2, 4})};
        CHECK((bits(call({x}, {weight, bias}, out).at(0)) == before));
        CHECK((bits(out.out[0]) == before));

        const auto backward = [&](const std::vector<Tensor>& gradients) {
            return ops::backward(type, how, {x}, {weight, bias}, gradients);
        };
        check_error(invalid, {type, "1 outputs", "got 0"}, [&] { backward({}); });
        check_error(invalid, {type, "1 outputs", "got 2"}, [&] { backward({y, y}); });
        check_error(invalid, {type, "output gradient 0", "[2, 3]", "[2, 4]"},
                    [&] { backward({x}); });
        check_error(invalid, {type, "output gradient 0", "int32"}, [&] {
            backward({Tensor(device, Shape{2, 4}, DType::i32)});
        });
        CHECK(backward({y}).size() == 3);

        ops::CallOptions forced{.engine = "matmul.no_such"};
        check_error(invalid, {"'matmul.no_such'"}, [&] { call({x}, {weight, bias}, forced); });
        CHECK((bits(call({x}, {weight, bias}).at(0)) == before));
    }
}

TEST_CASE("networks that cannot be say why", "[errors]") {
    const auto with = [](const std::string& from, const std::string& to) {
        std::string json = small_network;
        return json.replace(json.find(from), from.size(), to);
    };
    ON_EVERY_DEVICE(device) {
        const auto refused = [&](const std::string& json, const std::vector<std::string>& words) {
            check_error(invalid, words, [&] { make_net(device, json); });
        };
        refused(with("\"inputs\": [\"conv\"]", "\"inputs\": [\"con\"]"),
                {"'bn'", "'con'", "'conv'"});
        refused(with("\"outputs\": [\"scores\", \"loss\"]", "\"outputs\": [\"score\"]"),
                {"'score'", "'scores'"});
        refused(with("\"type\": \"BatchNorm\"", "\"type\": \"BatchNrm\""),
                {"'bn'", "'BatchNrm'", "'BatchNorm'"});
        refused(with("\"name\": \"relu\", \"type\"", "\"name\": \"bn\", \"type\""),
                {"'bn'", "two"});
        refused(with("\"kernel\": 3", "\"kernel\": 30"), {"'conv'", "8"});
        CHECK_THROWS_AS(make_net(device, "{"), Error);
        const auto memory = [](const std::string& type, const std::string& options) {
            return R"({"inputs": [{"name": "x", "shape": [60000, 2, 3]}], "outputs": ["y"],
                       "operators": [{"name": "memory", "type": ")" +
                   type + R"(", "inputs": ["x"], "outputs": ["y"], "options": {)" + options +
                   "}}]}";
        };
        for (const char* const type : {"LSTM", "GRU"}) {
            // Four times either size is 0 in 64 bits, or more than these hold.
            for (const char* const size : {"4611686018427387904", "9223372036854775807"})
                refused(memory(type, std::string(R"("hidden_size": )") + size),
                        {"'memory'", "hidden_size must be at most 2147483647", size});
            refused(memory(type, R"("hidden_size": 2147483647)"), {"'memory'", "2^60 elements"});
            refused(memory(type, R"("hidden_size": 4, "num_layers": 1000, "bidirectional": true)"),
                    {"'memory'", "60000 steps for 2000 runs", "at most 100000"});
        }
        NetOptions options{.extra_outputs = {"no"}};
        check_error(invalid, {"'no'"}, [&] { make_net(device, small_network, options); });
        options = {};
        options.engines = {{"nobody", "conv2d.reference"}};
        Net nobody = make_net(device, small_network, options);
        check_error(invalid, {"'nobody'"}, [&] { nobody.forward(); });
    }
}

TEST_CASE("a batch that does not fit leaves the net to smaller ones", "[errors]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, R"({
          "inputs": [{"name": "data", "shape": [2, 1048576]}], "outputs": ["y"],
          "operators": [{"name": "abs", "type": "Abs", "inputs": ["data"], "outputs": ["y"]}]})");
        set_floats(net, "data", random_floats(2 * 1048576, 1));
        net.forward();
        const auto before = bits(net.output("y"));
        net.reshape(static_cast<std::int64_t>(device.traits().global_bytes >> 22) + 1);
        check_error(ErrorKind::out_of_memory, {"MiB"}, [&] { net.forward(); });
        check_error(ErrorKind::out_of_memory, {"MiB"}, [&] { net.prepare(); });
        CHECK(net.input_shape("data")[0] > 2);
        net.reshape(2);
        // A solver that cannot be planned does not exist afterwards.
        Net small = make_net(device, small_network, training());
        small.reshape(std::int64_t{1} << 40);
        CHECK_THROWS_AS(Solver(small, {}), Error);
        small.reshape(4);
        for (const NodeReport& node : small.nodes()) CHECK(node.part != "update");
        CHECK((bits(net.output("y")) == before));
        net.forward();
        CHECK((bits(net.output("y")) == before));
    }
}
