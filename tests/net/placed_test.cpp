// SPDX-License-Identifier: MIT
// Networks whose operators run on several devices: they compute the bits of one device, every value
// moves once to each device that reads it, and mistakes are errors.
#include "net/placed_support.hpp"

#include <algorithm>
#include <cstdlib>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// The device as one that lacks doubles.
Context open_without_doubles(const std::string& id) {
    const Variable lacks("DLPRIM_TRAITS", "fp64=0");
    return Context(id);
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("two devices of a kind compute the bits of one", "[placed]") {
    ON_EVERY_DEVICE(device) {
        for (const Mode mode : {Mode::inference, Mode::evaluation, Mode::training}) {
            for (const Example& example : examples()) {
                NetOptions options = with_mode(mode);
                options.input_gradients = mode != Mode::inference;
                const std::string json = placed(example.json, example.device_of);
                INFO("mode " << static_cast<int>(mode) << ", " << json);
                Net one = make_net(device, example.json, options);
                PlacedNet two = PlacedNet::from_json(two_like(device), json, options);
                two.initialize();
                feed(one, 1);
                feed(two, 1);
                one.forward();
                two.forward();
                if (mode != Mode::inference) {
                    one.backward();
                    two.backward();
                }
                const bool gradients = mode != Mode::inference;
                check_same(bits_of_results(one, gradients), bits_of_results(two, gradients));
            }
        }
    }
}

TEST_CASE("three steps of Adam on two devices have the bits of one", "[placed]") {
    ON_EVERY_DEVICE(device) {
        for (const Example& example : examples()) {
            const std::string json = placed(example.json, example.device_of);
            INFO(json);
            Net one = make_net(device, example.json, training());
            PlacedNet two = PlacedNet::from_json(two_like(device), json, training());
            two.initialize();
            SolverOptions how{.weight_decay = 0.01, .average = 0.9};
            Solver solver(one, how);
            PlacedSolver placed_solver(two, how);
            for (unsigned step = 0; step < 3; ++step) {
                feed(one, step);
                feed(two, step);
                solver.set_learning_rate(1e-2 / (step + 1));
                placed_solver.set_learning_rate(1e-2 / (step + 1));
                solver.step();
                placed_solver.step();
                CHECK(bits(one.output("loss")) == bits(two.output("loss")));
            }
            CHECK(placed_solver.steps() == 3);
            check_same(bits_of_params(one), bits_of_params(two));
            solver.use_averages();
            placed_solver.use_averages();
            check_same(bits_of_params(one), bits_of_params(two));
        }
    }
}

TEST_CASE("gradients of several batches are averaged on every device", "[placed]") {
    ON_EVERY_DEVICE(device) {
        Net one = make_net(device, branches, training());
        PlacedNet two = PlacedNet::from_json(
            two_like(device), placed(branches, {{"two", "b"}, {"three", "b"}}), training());
        two.initialize();
        SolverOptions how{.kind = SolverOptions::Kind::sgd, .clip_value = 0.01, .accumulate = 2};
        Solver solver(one, how);
        PlacedSolver placed_solver(two, how);
        for (unsigned step = 0; step < 4; ++step) {
            feed(one, step);
            feed(two, step);
            solver.step();
            placed_solver.step();
        }
        CHECK(placed_solver.steps() == 2);
        check_same(bits_of_params(one), bits_of_params(two));
    }
}

TEST_CASE("the host and another device train one network", "[placed]") {
    ON_EVERY_DEVICE(device) {
        const std::string json = placed(residual, {{"conv2", "other"}, {"bn", "other"}});
        Net one = make_net(Context("host"), residual, training());
        PlacedNet two =
            PlacedNet::from_json({{"here", Context("host")}, {"other", device}}, json, training());
        two.initialize();
        Solver solver(one, {});
        PlacedSolver placed_solver(two, {});
        for (unsigned step = 0; step < 3; ++step) {
            feed(one, step);
            feed(two, step);
            solver.step();
            placed_solver.step();
            check_close(two.output("loss").to_floats(), one.output("loss").to_doubles(), 1e-5);
        }
        CHECK(two.output("scores").context() == two.device("here"));
        CHECK(two.param("bn.0").context() == two.device("other"));
    }
}

TEST_CASE("a value moves once to each device that reads it", "[placed]") {
    // The device b reads stem twice, in two parts; a has it. Its gradient goes back through the
    // four readers, from the last to the first.
    PlacedNet net = PlacedNet::from_json(
        two_like(Context("host")), placed(branches, {{"two", "b"}, {"four", "b"}}), training());
    net.initialize();
    feed(net, 1);
    net.forward();
    net.backward();
    Names moves;
    for (const PlacedNet::Move& move : net.moves()) {
        CHECK(move.times == 1);
        CHECK(move.bytes == (move.value == "stem" ? 4 * 7 * 4 : 4 * 3 * 4));
        moves.push_back(move.value + (move.gradient ? "' " : " ") + move.from + move.to);
    }
    std::sort(moves.begin(), moves.end());
    CHECK(moves == Names{"four ba", "four' ab", "stem ab", "stem' ab", "stem' ba", "stem' ba",
                         "two ba", "two' ab"});
    Names parts;
    for (const PlacedNet::Part& part : net.parts())
        parts.push_back(part.device + " " + std::to_string(part.operators.size()));
    CHECK(parts == Names{"a 2", "b 1", "a 1", "b 1", "a 4"});
}

TEST_CASE("nothing moves between two names of one context", "[placed]") {
    const Context host("host");
    PlacedNet net = PlacedNet::from_json(
        {{"a", host}, {"b", host}}, placed(branches, {{"two", "b"}, {"four", "b"}}), training());
    net.initialize();
    feed(net, 1);
    net.forward();
    net.backward();
    CHECK(net.moves().empty());
    Net one = make_net(host, branches, training());
    feed(one, 1);
    one.forward();
    one.backward();
    CHECK(bits(one.gradient("stem.0")) == bits(net.gradient("stem.0")));
}

TEST_CASE("an input that two devices read moves to the second one", "[placed]") {
    const char* const json = R"({
      "inputs": [{"name": "x", "shape": [2, 3]}], "outputs": ["y"],
      "operators": [
        {"name": "one", "type": "InnerProduct", "inputs": ["x"], "outputs": ["one"],
         "options": {"outputs": 3}},
        {"name": "y", "type": "Elementwise", "inputs": ["one", "x"], "outputs": ["y"],
         "device": "b"}]})";
    ON_EVERY_DEVICE(device) {
        Net one = make_net(device, json);
        PlacedNet two = PlacedNet::from_json(two_like(device), json);
        two.initialize();
        for (unsigned batch = 0; batch < 2; ++batch) {
            feed(one, batch);
            feed(two, batch);
            one.forward();
            two.forward();
            CHECK(bits(one.output("y")) == bits(two.output("y")));
        }
        REQUIRE(two.moves().size() == 2);
        for (const PlacedNet::Move& move : two.moves()) CHECK(move.times == 2);
    }
}

TEST_CASE("an operator may work in place on what another device has made", "[placed]") {
    const char* const json = R"({
      "inputs": [{"name": "x", "shape": [2, 3]}], "outputs": ["x", "loss"],
      "operators": [
        {"name": "one", "type": "InnerProduct", "inputs": ["x"], "outputs": ["t"],
         "options": {"outputs": 3}},
        {"name": "act", "type": "Activation", "inputs": ["t"], "outputs": ["t"],
         "options": {"activation": "tanh"}, "device": "b"},
        {"name": "two", "type": "InnerProduct", "inputs": ["t"], "outputs": ["u"],
         "options": {"outputs": 3}},
        {"name": "mse", "type": "MSELoss", "inputs": ["u", "t"], "outputs": ["loss"],
         "device": "b"}]})";
    ON_EVERY_DEVICE(device) {
        Net one = make_net(device, json, training());
        PlacedNet two = PlacedNet::from_json(two_like(device), json, training());
        two.initialize();
        feed(one, 1);
        feed(two, 1);
        one.forward();
        two.forward();
        one.backward();
        two.backward();
        for (const char* const name : {"x", "loss"})
            CHECK(bits(one.output(name)) == bits(two.output(name)));
        for (const std::string& name : one.param_names()) {
            INFO(name);
            CHECK(bits(one.gradient(name)) == bits(two.gradient(name)));
        }
    }
}

TEST_CASE("weights files are those of a net", "[placed]") {
    const Folder folder;
    const Context host("host");
    const std::string json = placed(small_network, {{"hidden", "b"}});
    Net one = make_net(host, small_network, training(5));
    one.save_weights(folder.file("one.h5"));
    PlacedNet two = PlacedNet::from_json(two_like(host), json, training());
    two.load_weights(folder.file("one.h5"));
    CHECK(bits_of_params(one) == bits_of_params(two));
    two.save_weights(folder.file("two.h5"));
    CHECK(load_tensors(folder.file("two.h5")).size() == one.param_names().size());
    Net back = Net::from_json(host, small_network, training());
    back.load_weights(folder.file("two.h5"));
    CHECK(bits_of_params(back) == bits_of_params(two));

    auto some = load_tensors(folder.file("one.h5"));
    some.erase("hidden.0");
    save_tensors(folder.file("some.h5"), some);
    check_error(ErrorKind::not_found, {"some.h5", "hidden.0"},
                [&] { two.load_weights(folder.file("some.h5")); });
    CHECK(bits_of_params(back) == bits_of_params(two));
    two.load_weights(folder.file("some.h5"), true);
}

TEST_CASE("memory is known before, by device", "[placed]") {
    ON_EVERY_DEVICE(device) {
        const std::vector<NamedDevice> devices = two_like(device);
        PlacedNet net = PlacedNet::from_json(
            devices, placed(residual, {{"conv2", "b"}, {"bn", "b"}}), training());
        const SolverOptions adam;
        const auto planned = net.planned_peak_bytes(&adam);
        REQUIRE(planned.size() == 2);
        for (const NamedDevice& each : devices) CHECK(each.context.memory().live == 0);
        net.initialize();
        PlacedSolver solver(net, adam);
        feed(net, 1);
        solver.step();
        CHECK(net.planned_peak_bytes() == planned);
        for (const NamedDevice& each : devices) {
            const std::uint64_t live = each.context.memory().live;
            INFO(each.name << " has " << live << ", planned were " << planned.at(each.name));
            CHECK(live >= planned.at(each.name));
            // As any net, a part also keeps a copy of running statistics, with which a step whose
            // engine fails runs again.
            CHECK(live <= planned.at(each.name) + 1024);
        }
    }
}

TEST_CASE("names of devices that fit nothing are told", "[placed]") {
    const Context host("host");
    const std::string json = placed(small_network, {{"conv", "gpu0"}});
    check_error(invalid, {"[Convolution2D 'conv']", "'gpu0'", "nobody has bound", "gpu_0, cpu"},
                [&] {
                    PlacedNet::from_json({{"gpu_0", host}, {"cpu", host}}, json);
                });
    check_error(invalid, {"none is bound"}, [&] { PlacedNet::from_json({}, json); });
    check_error(invalid, {"'a'", "twice"}, [&] {
        PlacedNet::from_json({{"a", host}, {"a", host}}, json);
    });
    check_error(invalid, {"needs a name"}, [&] { PlacedNet::from_json({{"", host}}, json); });

    PlacedNet net = PlacedNet::from_json({{"gpu0", host}, {"spare", host}}, json);
    net.initialize();
    const Names notes = net.notes();
    REQUIRE(notes.size() == 1);
    CHECK(notes[0] == "device 'spare' is bound, and no operator runs on it");
    check_error(ErrorKind::not_found, {"'gpu'", "gpu0"}, [&] { net.device("gpu"); });
    check_error(ErrorKind::not_found, {"'dat'", "data"}, [&] { net.input("dat"); });
    check_error(ErrorKind::not_found, {"'score'", "scores"}, [&] { net.output("score"); });
    check_error(ErrorKind::not_found, {"'conv.2'"}, [&] { net.param("conv.2"); });

    // A Net runs all on its own device, and says so.
    const Names remarks = make_net(host, json).notes();
    REQUIRE(remarks.size() == 1);
    CHECK(remarks[0].find("'gpu0'") != std::string::npos);
}

TEST_CASE("an operator without an engine on its device runs on the host", "[placed]") {
    const char* const json = R"({
      "inputs": [{"name": "x", "shape": [2, 3], "dtype": "double"}], "outputs": ["y"],
      "operators": [
        {"name": "tanh", "type": "Activation", "inputs": ["x"], "outputs": ["t"],
         "options": {"activation": "tanh"}},
        {"name": "single", "type": "Cast", "inputs": ["t"], "outputs": ["s"],
         "options": {"dtype": "float"}},
        {"name": "y", "type": "InnerProduct", "inputs": ["s"], "outputs": ["y"],
         "options": {"outputs": 4}}]})";
    const std::vector<double> x{-2, -1, 0, 1, 2, 3};
    Net one = make_net(Context("host"), json);
    one.set_input("x", x.data(), x.size() * sizeof(double));
    one.forward();
    ON_EVERY_DEVICE(device) {
        if (device.traits().host) continue;
        const Context without_doubles = open_without_doubles(device.info().id);
        PlacedNet net = PlacedNet::from_json({{"gpu", without_doubles}}, json);
        net.initialize();
        net.set_input("x", x.data(), x.size() * sizeof(double));
        net.forward();
        check_close(net.output("y").to_floats(), one.output("y").to_doubles(), 1e-5);
        CHECK(net.device_names() == Names{"gpu", "host"});
        CHECK(net.parts().size() == 2);
        const Names notes = net.notes();
        REQUIRE(notes.size() >= 2);
        for (const std::size_t i : {0, 1}) {
            CHECK(notes[i].find(i == 0 ? "operator 'tanh'" : "operator 'single'") == 0);
            INFO(notes[i]);
            CHECK(notes[i].find("no engine on this device can run it") != std::string::npos);
        }
    }
}

TEST_CASE("a placed network is a Net, and takes other shapes", "[placed]") {
    ON_EVERY_DEVICE(device) {
        for (const Mode mode : {Mode::inference, Mode::evaluation}) {
            for (const Example& example : examples()) {
                INFO("mode " << static_cast<int>(mode) << ", " << example.json);
                Net one = make_net(device, example.json, with_mode(mode));
                Net two = PlacedNet::from_json(
                    two_like(device), placed(example.json, example.device_of), with_mode(mode));
                two.initialize();
                for (const unsigned batch :
                     {2, 4, 3, 2}) {  // the last one has its plan from before
                    one.reshape(batch);
                    two.reshape(batch);
                    check_error(invalid, {"never set"}, [&] { two.forward(); });
                    feed(one, batch);
                    feed(two, batch);
                    one.forward();
                    two.forward();
                    check_same(bits_of_results(one, false), bits_of_results(two, false));
                }
                CHECK(two.param_names() == one.param_names());
                CHECK(two.loss_weights() == one.loss_weights());
                CHECK(two.gradient_names().size() == one.gradient_names().size());
                CHECK_FALSE(two.nodes().empty());
            }
        }
    }
    PlacedNet net = PlacedNet::from_json(two_like(Context("host")),
                                         placed(branches, {{"two", "b"}}), training());
    net.initialize();
    check_error(invalid, {"one device"}, [&] { net.profile(false); });
    Net& as_net = net;
    Solver solver(as_net, {});
    check_error(invalid, {"keeps its shapes"}, [&] { net.reshape(2); });
    check_error(invalid, {"step_if()", "one device"}, [&] { solver.step_if([] { return true; }); });
    CHECK(solver.loss_scale() == 1);
}

TEST_CASE("what parts cannot do is refused", "[placed]") {
    const std::vector<NamedDevice> devices = two_like(Context("host"));
    const std::string json = placed(branches, {{"two", "b"}});
    const auto refuse = [&](const std::vector<std::string>& words, auto change) {
        PlacedNet net = PlacedNet::from_json(devices, json, training());
        SolverOptions options;
        change(options);
        check_error(invalid, words, [&] { PlacedSolver(net, options); });
    };
    refuse({"shards", "0"}, [](SolverOptions& o) { o.shards = 0; });
    refuse({"shards is 2", "accumulate"}, [](SolverOptions& o) { o.shards = o.accumulate = 2; });
    refuse({"state_parts"}, [](SolverOptions& o) { o.state_parts = 2; });
    refuse({"learning rate"}, [](SolverOptions& o) { o.learning_rate = -1; });

    NetOptions options = training();
    options.precision = Precision::fp16;
    PlacedNet half =
        PlacedNet::from_json(devices, placed(branches, {{"y", "b"}, {"mse", "b"}}), options);
    check_error(invalid, {"'loss'", "loss_scale to 0"}, [&] { PlacedSolver(half, {}); });

    options = training();
    options.output_gradients = true;
    check_error(invalid, {"output_gradients"},
                [&] { PlacedNet::from_json(devices, json, options); });
    options = training();
    options.memory_limit = 1 << 20;
    check_error(invalid, {"memory_limit"}, [&] { PlacedNet::from_json(devices, json, options); });

    std::string shared = json;
    for (const char* const name : {"one", "two"}) {
        const std::string outputs = "\"outputs\": [\"" + std::string(name) + "\"],";
        shared.insert(shared.find(outputs), "\"params\": [\"w\", \"b\"], ");
    }
    check_error(invalid, {"parameter 'w'", "'two'", "one device"},
                [&] { PlacedNet::from_json(devices, shared, training()); });

    PlacedNet net = PlacedNet::from_json(devices, json);
    net.initialize();
    check_error(invalid, {"training mode"}, [&] { PlacedSolver(net, {}); });
    check_error(invalid, {"backward()"}, [&] { net.backward(); });
    const float value = 0;
    check_error(invalid, {"'data'", "96 bytes, got 4"},
                [&] { net.set_input("data", &value, sizeof(value)); });
    PlacedNet other = std::move(net);
    check_error(invalid, {"moved from"},
                [&] { net.forward(); });  // NOLINT(bugprone-use-after-move)
    other.prepare();
}
