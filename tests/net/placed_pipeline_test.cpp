// SPDX-License-Identifier: MIT
// Networks on several devices whose parts work at once on the shards of a batch: they train to the
// bits of one device, whatever the shards and the cuts, and stop when a device fails.
#include "net/placed_support.hpp"

#include "api/placement/pipeline_order.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

SolverOptions adam(int shards) {
    return {.weight_decay = 0.01, .shards = shards};
}

/// Trains the network on one device and on several, and compares what both have made.
void check_training(Net& one, PlacedNet& placed_net, const SolverOptions& how, unsigned steps) {
    Solver solver(one, how);
    PlacedSolver placed_solver(placed_net, how);
    for (unsigned step = 0; step < steps; ++step) {
        solver.set_learning_rate(1e-2 / (step + 1));
        placed_solver.set_learning_rate(1e-2 / (step + 1));
        for (unsigned shard = 0; shard < static_cast<unsigned>(how.shards); ++shard) {
            feed(one, 100 * step + shard);
            feed(placed_net, 100 * step + shard);
            solver.step();
            placed_solver.step();
        }
        INFO("step " << step);
        for (const std::string& loss : one.loss_names())
            CHECK((bits(one.output(loss)) == bits(placed_net.output(loss))));
        for (const std::string& name : one.param_names())
            if (one.is_trainable(name))
                CHECK((bits(one.gradient(name)) == bits(placed_net.gradient(name))));
    }
    CHECK(placed_solver.steps() == solver.steps());
    check_same(bits_of_params(one), bits_of_params(placed_net));
}

}  // namespace

TEST_CASE("parts that work at once train to the bits of one device", "[placed_pipeline]") {
    const int shards = GENERATE(1, 2, 3, 4, 8);
    ON_EVERY_DEVICE(device) {
        for (const Example& example : examples()) {
            const std::string json = placed(example.json, example.device_of);
            INFO(shards << " shards, " << json);
            Net one = make_net(device, example.json, training());
            PlacedNet two = PlacedNet::from_json(two_like(device), json, training());
            two.initialize();
            check_training(one, two, adam(shards), 3);
        }
    }
}

TEST_CASE("orders of tasks end, and keep to the shards in flight", "[placed_pipeline]") {
    const std::vector<std::vector<std::size_t>> chains{
        {0}, {0, 1}, {0, 1, 2, 3}, {0, 1, 0}, {0, 1, 0, 1, 0}, {0, 1, 2, 0, 2, 1}};
    for (const std::vector<std::size_t>& device_of : chains) {
        for (const int shards : {1, 2, 3, 8, 17}) {
            const int parts = static_cast<int>(device_of.size());
            INFO(parts << " parts, " << shards << " shards");
            std::vector<std::vector<PipelineTask>> left = pipeline_order(device_of, shards);
            // Devices run their tasks as soon as they can.
            std::vector<int> forwards(device_of.size()), backwards = forwards;
            for (bool any = true; any;) {
                any = false;
                for (std::size_t device = 0; device < left.size(); ++device) {
                    std::vector<PipelineTask>& tasks = left[device];
                    if (tasks.empty()) continue;
                    const PipelineTask task = tasks.front();
                    const auto part = static_cast<std::size_t>(task.part);
                    REQUIRE(device_of[part] == device);
                    const bool is_first = task.backward ? task.part + 1 == parts : part == 0;
                    const std::vector<int>& before = task.backward ? backwards : forwards;
                    if (!is_first && before[task.backward ? part + 1 : part - 1] <= task.shard)
                        continue;
                    CHECK(task.shard == (task.backward ? backwards : forwards)[part]++);
                    CHECK(backwards[part] <= forwards[part]);
                    CHECK(forwards[part] - backwards[part] <=
                          shards_in_flight(task.part, parts, shards));
                    tasks.erase(tasks.begin());
                    any = true;
                }
            }
            for (const auto& tasks : left) CHECK(tasks.empty());
            for (std::size_t part = 0; part < device_of.size(); ++part)
                CHECK(backwards[part] == shards);
        }
    }
}

TEST_CASE("two parts take turns after the first shards", "[placed_pipeline]") {
    const auto orders = pipeline_order({0, 1}, 4);
    REQUIRE(orders.size() == 2);
    const auto text = [](const std::vector<PipelineTask>& tasks) {
        std::string all;
        for (const PipelineTask& task : tasks)
            all += (task.backward ? "B" : "F") + std::to_string(task.shard);
        return all;
    };
    CHECK(text(orders[0]) == "F0F1F2B0F3B1B2B3");
    CHECK(text(orders[1]) == "F0B0F1B1F2B2F3B3");
}

TEST_CASE("the host and another device work at once", "[placed_pipeline]") {
    ON_EVERY_DEVICE(device) {
        for (const Example& example : examples()) {
            const std::string json = placed(example.json, example.device_of);
            INFO(json);
            Net one = make_net(Context("host"), example.json, training());
            PlacedNet two =
                PlacedNet::from_json({{"a", Context("host")}, {"b", device}}, json, training());
            two.initialize();
            Solver solver(one, adam(4));
            PlacedSolver placed_solver(two, adam(4));
            for (unsigned shard = 0; shard < 12; ++shard) {
                feed(one, shard);
                feed(two, shard);
                solver.step();
                placed_solver.step();
            }
            check_close(two.output("loss").to_floats(), one.output("loss").to_doubles(), 1e-4);
        }
    }
}

TEST_CASE("what a part makes without backward stays until all have read it", "[placed_pipeline]") {
    // The first part is not trained. The second one has no parameters, so that no gradient says
    // that it is done; the third one has running statistics alone.
    const char* const json = R"({
      "inputs": [{"name": "x", "shape": [64, 64]}, {"name": "target", "shape": [64, 2048]}],
      "outputs": ["y", "loss"],
      "operators": [
        {"name": "first", "type": "InnerProduct", "inputs": ["x"], "outputs": ["first"],
         "options": {"outputs": 256}, "frozen": true},
        {"name": "tanh", "type": "Activation", "inputs": ["first"], "outputs": ["tanh"],
         "options": {"activation": "tanh"}},
        {"name": "bn", "type": "BatchNorm", "inputs": ["tanh"], "outputs": ["bn"],
         "options": {"affine": false}},
        {"name": "y", "type": "InnerProduct", "inputs": ["bn"], "outputs": ["y"],
         "options": {"outputs": 2048}},
        {"name": "mse", "type": "MSELoss", "inputs": ["y", "target"], "outputs": ["loss"]}]})";
    ON_EVERY_DEVICE(device) {
        for (const auto& device_of : std::vector<std::map<std::string, std::string>>{
                 {{"tanh", "b"}, {"y", "b"}, {"mse", "b"}},
                 {{"y", "b"}, {"mse", "b"}},
                 {{"bn", "b"}}}) {
            Net one = make_net(device, json, training());
            PlacedNet two =
                PlacedNet::from_json(two_like(device), placed(json, device_of), training());
            two.initialize();
            check_training(one, two, adam(8), 2);
        }
    }
}

TEST_CASE("a part that waits for nobody leaves others what they still read", "[placed_pipeline]") {
    // What `side` makes is not trained, and it reads inputs alone. So neither values nor gradients
    // hold it back while the other device has yet to compute the gradient of the weights of `use`,
    // which reads it.
    const char* const json = R"({
      "inputs": [{"name": "x", "shape": [64, 512]}, {"name": "z", "shape": [64, 16]},
                 {"name": "target", "shape": [64, 256]}],
      "outputs": ["y", "loss"],
      "operators": [
        {"name": "slow", "type": "InnerProduct", "inputs": ["x"], "outputs": ["slow"],
         "options": {"outputs": 256}},
        {"name": "side", "type": "InnerProduct", "inputs": ["z"], "outputs": ["side"],
         "options": {"outputs": 1024}, "frozen": true},
        {"name": "use", "type": "InnerProduct", "inputs": ["side"], "outputs": ["use"],
         "options": {"outputs": 256}},
        {"name": "y", "type": "Elementwise", "inputs": ["slow", "use"], "outputs": ["y"]},
        {"name": "mse", "type": "MSELoss", "inputs": ["y", "target"], "outputs": ["loss"]}]})";
    ON_EVERY_DEVICE(device) {
        Net one = make_net(device, json, training());
        PlacedNet two =
            PlacedNet::from_json(two_like(device), placed(json, {{"side", "b"}}), training());
        two.initialize();
        check_training(one, two, adam(16), 3);
    }
}

TEST_CASE("averages and all runs of forward are those of one device", "[placed_pipeline]") {
    ON_EVERY_DEVICE(device) {
        const std::string json = placed(small_network, {{"hidden", "b"}, {"drop", "b"}});
        Net one = make_net(device, small_network, training());
        PlacedNet two = PlacedNet::from_json(two_like(device), json, training());
        two.initialize();
        SolverOptions how = adam(3);
        how.average = 0.9;
        how.clip_value = 0.01;
        Solver solver(one, how);
        PlacedSolver placed_solver(two, how);
        for (unsigned shard = 0; shard < 6; ++shard) {
            feed(one, shard);
            feed(two, shard);
            solver.step();
            placed_solver.step();
        }
        // Between the steps the network runs alone, too.
        feed(one, 7);
        feed(two, 7);
        one.forward();
        two.forward();
        CHECK((bits(one.output("scores")) == bits(two.output("scores"))));
        one.backward();
        two.backward();
        CHECK((bits(one.gradient("conv.0")) == bits(two.gradient("conv.0"))));
        for (unsigned shard = 0; shard < 3; ++shard) {
            feed(one, shard);
            feed(two, shard);
            solver.step();
            placed_solver.step();
        }
        check_same(bits_of_params(one), bits_of_params(two));
        solver.use_averages();
        placed_solver.use_averages();
        check_same(bits_of_params(one), bits_of_params(two));
        for (const PlacedNet::Move& move : two.moves()) CHECK(move.times == 10);
    }
}

TEST_CASE("memory of shards in flight is known before", "[placed_pipeline]") {
    ON_EVERY_DEVICE(device) {
        for (const int shards : {2, 8}) {
            const std::vector<NamedDevice> devices = two_like(device);
            PlacedNet net = PlacedNet::from_json(
                devices, placed(residual, {{"conv2", "b"}, {"bn", "b"}}), training());
            const SolverOptions how = adam(shards);
            const auto planned = net.planned_peak_bytes(&how);
            const SolverOptions whole = adam(1);
            for (const auto& [name, bytes] : net.planned_peak_bytes(&whole))
                CHECK(bytes < planned.at(name));
            for (const NamedDevice& each : devices) CHECK(each.context.memory().live == 0);
            net.initialize();
            PlacedSolver solver(net, how);
            for (int shard = 0; shard < 2 * shards; ++shard) {
                feed(net, static_cast<unsigned>(shard));
                solver.step();
            }
            CHECK(net.planned_peak_bytes() == planned);
            for (const NamedDevice& each : devices) {
                const std::uint64_t live = each.context.memory().live;
                INFO(each.name << " has " << live << ", planned were " << planned.at(each.name));
                CHECK(live >= planned.at(each.name));
                // As any net, each working set also keeps a copy of running statistics, with which
                // a step whose engine fails runs again.
                CHECK(live <= planned.at(each.name) + 3 * 1024);
            }
        }
    }
}

TEST_CASE("an error of one device ends the step of all", "[placed_pipeline]") {
    // Indices come from another device, so that nobody sees before that one is out of range.
    const char* const json = R"({
      "inputs": [{"name": "x", "shape": [4]}, {"name": "target", "shape": [4, 3]}],
      "outputs": ["y", "loss"],
      "operators": [
        {"name": "rows", "type": "Cast", "inputs": ["x"], "outputs": ["rows"],
         "options": {"dtype": "int"}},
        {"name": "table", "type": "Parameter", "outputs": ["table"],
         "options": {"shape": [10, 5]}},
        {"name": "pick", "type": "Gather", "inputs": ["table", "rows"], "outputs": ["vectors"],
         "device": "b"},
        {"name": "y", "type": "InnerProduct", "inputs": ["vectors"], "outputs": ["y"],
         "options": {"outputs": 3}},
        {"name": "mse", "type": "MSELoss", "inputs": ["y", "target"], "outputs": ["loss"]}]})";
    const Context host("host");
    PlacedNet net = PlacedNet::from_json(two_like(host), json, training());
    Net one = make_net(host, json, training());
    net.initialize();
    Solver solver(one, adam(4));
    PlacedSolver placed_solver(net, adam(4));
    const std::vector<float> targets(12, 0);
    net.set_input("target", targets.data(), targets.size() * sizeof(float));
    set_floats(one, "target", targets);
    const auto run = [&](float bad) {
        for (unsigned shard = 0; shard < 4; ++shard) {
            std::vector<float> rows(4, static_cast<float>(shard));
            if (shard == 2) rows[3] = bad;
            net.set_input("x", rows.data(), rows.size() * sizeof(float));
            one.set_input("x", rows.data(), rows.size() * sizeof(float));
            placed_solver.step();
            if (bad < 10) solver.step();
        }
    };
    run(1);
    const auto before = bits_of_params(net);
    for (int again = 0; again < 3; ++again)
        check_error(invalid, {"device 'b'", "pick", "77"}, [&] { run(77); });
    check_same(before, bits_of_params(net));
    run(2);
    CHECK(placed_solver.steps() == 2);
    check_same(bits_of_params(one), bits_of_params(net));
}

TEST_CASE("statistics of all shards are refused where shards follow each other",
          "[placed_pipeline]") {
    std::string json = placed(small_network, {{"hidden", "b"}});
    const std::string norm = "\"inputs\": [\"conv\"], \"outputs\": [\"bn\"]";
    json.insert(json.find(norm), "\"options\": {\"sync\": true}, ");
    PlacedNet net = PlacedNet::from_json(two_like(Context("host")), json, training());
    check_error(invalid, {"BatchNorm 'bn'", "\"sync\""}, [&] { PlacedSolver(net, adam(2)); });
}

TEST_CASE("the norm of gradients is that of all parts", "[placed_pipeline]") {
    const int shards = GENERATE(1, 4);
    ON_EVERY_DEVICE(device) {
        for (const Example& example : examples()) {
            for (const double norm : {1e-2, 1e3}) {
                SolverOptions how = adam(shards);
                how.kind = SolverOptions::Kind::sgd;
                how.clip_norm = norm;
                how.accumulate = shards == 1 ? 2 : 1;
                const std::string json = placed(example.json, example.device_of);
                INFO(shards << " shards, clipped at " << norm << ", " << json);
                Net one = make_net(device, example.json, training());
                PlacedNet two = PlacedNet::from_json(two_like(device), json, training());
                two.initialize();
                check_training(one, two, how, 4);
            }
        }
    }
}

TEST_CASE("all parts have one loss scale", "[placed_pipeline]") {
    // The part in the middle computes in fp32 alone. Behind large weights its gradients and those
    // of the first part overflow with a large scale, and then the last part is not updated either.
    NetOptions options = training();
    options.precision = Precision::fp16;
    options.precisions = {{"hidden", Precision::fp32}};
    const std::string json = placed(small_network, {{"hidden", "b"}, {"drop", "b"}});
    ON_EVERY_DEVICE(device) {
        for (const double scale : {1024.0, 1e37}) {
            SolverOptions how = adam(4);
            how.loss_scale = scale;
            how.clip_norm = 0.1;
            Net one = make_net(device, small_network, options);
            PlacedNet two = PlacedNet::from_json(two_like(device), json, options);
            two.initialize();
            HostTensor large = two.read_param("scores.0");
            auto* const weights = reinterpret_cast<float*>(large.data.data());
            for (std::int64_t i = 0; i < large.shape.numel(); ++i) weights[i] *= 1e3F;
            one.write_params({{"scores.0", large}}, true);
            two.write_params({{"scores.0", large}}, true);
            INFO("scale " << scale);
            const auto before = bits_of_params(two);
            check_training(one, two, how, 1);
            const auto after = bits_of_params(two);
            for (const char* const name : {"conv.0", "hidden.0", "scores.0"})
                CHECK((after.at(name) == before.at(name)) == (scale > 1e30));
            for (const float gradient : two.gradient("scores.0").to_floats())
                CHECK(std::isfinite(gradient));
        }
    }
}
