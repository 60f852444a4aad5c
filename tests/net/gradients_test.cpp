// SPDX-License-Identifier: MIT
// How gradients are combined: over batches, over losses, and in front of frozen layers.
#include "net/support.hpp"
#include "net/two_layers.hpp"

#include <limits>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

std::vector<float> part(const std::vector<float>& all, std::size_t index, std::size_t size) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(index * size);
    return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}

/// A layer, two losses of different kinds on it, and a third loss after a second layer.
std::string three_losses(const std::string& outputs) {
    return R"({"inputs": [{"name": "data", "shape": [4, 3]}, {"name": "target", "shape": [4, 5]},
                         {"name": "label", "shape": [4], "dtype": "int"}],
      "outputs": [)" +
           outputs + R"(],
      "operators": [
        {"name": "first", "type": "InnerProduct", "inputs": ["data"], "outputs": ["h"],
         "options": {"outputs": 5, "activation": "tanh"}},
        {"name": "mse", "type": "MSELoss", "inputs": ["h", "target"], "outputs": ["distance"]},
        {"name": "sum", "type": "Reduction", "inputs": ["h"], "outputs": ["squares"],
         "options": {"method": "sumsq", "start_axis": 1}},
        {"name": "second", "type": "InnerProduct", "inputs": ["h"], "outputs": ["scores"],
         "options": {"outputs": 3}},
        {"name": "softmax", "type": "SoftmaxWithLoss", "inputs": ["scores", "label"],
         "outputs": ["loss_class"]}]})";
}

void feed_three(Net& net) {
    set_floats(net, "data", random_floats(12, 1));
    set_floats(net, "target", random_floats(20, 2));
    if (net.input_names().size() == 3) set_labels(net, "label", {0, 2, 1, 2});
}

}  // namespace

TEST_CASE("gradients accumulated over k batches are those of a batch k times as large",
          "[gradients]") {
    constexpr std::size_t k = 3, small = 4;
    const SolverOptions::Kind kind = GENERATE(SolverOptions::Kind::sgd, SolverOptions::Kind::adam);
    const double clip = GENERATE(0.0, 0.2);
    ON_EVERY_DEVICE(device) {
        SolverOptions options{.kind = kind, .learning_rate = 0.02, .clip_norm = clip};
        Net whole = make_net(device, TwoLayers::json(k * small), training());
        Solver whole_solver(whole, options);
        options.accumulate = k;
        Net parts = make_net(device, TwoLayers::json(small), training());
        Solver parts_solver(parts, options);
        CHECK((all_bits(whole) == all_bits(parts)));
        for (unsigned step = 0; step < 5; ++step) {
            const auto data = random_floats(k * small * 3, 10 + step);
            const auto target = random_floats(k * small * 2, 20 + step);
            set_floats(whole, "data", data);
            set_floats(whole, "target", target);
            whole_solver.step();
            for (std::size_t i = 0; i < k; ++i) {
                const auto before = all_bits(parts);
                CHECK(parts_solver.steps() == step);
                set_floats(parts, "data", part(data, i, small * 3));
                set_floats(parts, "target", part(target, i, small * 2));
                parts_solver.step();
                if (i + 1 < k) CHECK((all_bits(parts) == before));
            }
        }
        CHECK(parts_solver.steps() == 5);
        for (const std::string& name : whole.param_names()) {
            INFO("parameter " << name);
            check_close(parts.param(name).to_floats(), doubles(whole.param(name).to_floats()),
                        1e-5);
        }
    }
}

TEST_CASE("a network's gradient is the one written out by hand", "[gradients]") {
    ON_EVERY_DEVICE(device) {
        for (const Mode mode : {Mode::training, Mode::evaluation}) {
            Net net = make_net(device, TwoLayers::json(7), with_mode(mode));
            const auto data = random_floats(21, 5), target = random_floats(14, 6);
            set_floats(net, "data", data);
            set_floats(net, "target", target);
            TwoLayers::Params params;
            for (const char* name : TwoLayers::names)
                params.push_back(doubles(net.param(name).to_floats()));
            net.forward();
            net.backward();
            const TwoLayers::Params expected = TwoLayers::gradient(params, data, target);
            for (std::size_t i = 0; i < 4; ++i)
                check_close(net.gradient(TwoLayers::names[i]).to_floats(), expected[i], 1e-5);
        }
    }
}

TEST_CASE("several losses make the weighted sum of their gradients", "[gradients]") {
    ON_EVERY_DEVICE(device) {
        const std::string names[] = {"distance", "squares", "loss_class"};
        const double weights[] = {0.25, -3, 2};
        std::map<std::string, std::vector<double>> expected;
        std::map<std::string, Bytes> params;
        for (int i = 0; i < 3; ++i) {
            Net alone = make_net(
                device, three_losses(R"({"name": ")" + names[i] + R"(", "loss_weight": 1})"),
                training());
            params = all_bits(alone);
            feed_three(alone);
            alone.forward();
            alone.backward();
            for (const std::string& name : alone.gradient_names()) {
                const auto gradient = alone.gradient(name).to_floats();
                auto& sum = expected[name];
                sum.resize(gradient.size());
                for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += weights[i] * gradient[e];
            }
        }
        Net together =
            make_net(device, three_losses(R"({"name": "distance", "loss_weight": 0.25}, "scores",
                            {"name": "squares", "loss_weight": -3},
                            {"name": "loss_class", "loss_weight": 2})"),
                     training());
        CHECK(together.loss_weights() == std::map<std::string, double>{{"distance", 0.25},
                                                                       {"squares", -3},
                                                                       {"loss_class", 2}});
        CHECK((all_bits(together) == params));
        feed_three(together);
        together.forward();
        together.backward();
        REQUIRE(together.gradient_names().size() == 4);
        for (const auto& [name, gradient] : expected) {
            INFO("parameter " << name);
            check_close(together.gradient(name).to_floats(), gradient, 1e-5);
        }
    }
}

TEST_CASE("a loss whose name begins with loss has weight 1", "[gradients]") {
    ON_EVERY_DEVICE(device) {
        Net named = make_net(device, three_losses(R"("loss_class")"), training());
        CHECK(named.loss_weights() == std::map<std::string, double>{{"loss_class", 1}});
    }
}

TEST_CASE("frozen layers keep every bit", "[gradients]") {
    std::string json = small_network;
    for (const std::string type : {"Convolution2D", "BatchNorm"}) {
        const std::string what = "\"type\": \"" + type + "\"";
        json.insert(json.find(what), "\"frozen\": true, ");
    }
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, json, training());
        SolverOptions options{.kind = SolverOptions::Kind::adamw, .weight_decay = 0.1};
        Solver solver(net, options);
        const std::string frozen[] = {"conv.0", "conv.1", "bn.0", "bn.1", "bn.2", "bn.3"};
        for (const std::string& name : frozen) CHECK_FALSE(net.is_trainable(name));
        const auto before = all_bits(net);
        for (unsigned step = 0; step < 4; ++step) {
            feed_small_network(net, step);
            solver.step();
        }
        auto after = all_bits(net);
        for (const std::string& name : frozen) {
            INFO("parameter " << name);
            CHECK((after.at(name) == before.at(name)));
            CHECK_THROWS_AS(net.gradient(name), Error);
        }
        for (const std::string name : {"hidden.0", "hidden.1", "scores.0", "scores.1"}) {
            INFO("parameter " << name);
            CHECK((after.at(name) != before.at(name)));
        }
    }
}

TEST_CASE("what no loss depends on has a gradient of zeros, and is only decayed", "[gradients]") {
    ON_EVERY_DEVICE(device) {
        // "second" and its parameters affect no loss.
        Net net = make_net(device, three_losses(R"({"name": "distance", "loss_weight": 1},
                                                         "scores")"),
                           training());
        SolverOptions sgd;
        sgd.kind = SolverOptions::Kind::sgd;
        Solver solver(net, sgd);
        feed_three(net);
        const auto before = all_bits(net);
        solver.step();
        CHECK(net.gradient("second.0").to_floats() == std::vector<float>(15, 0));
        CHECK(net.gradient("second.1").to_floats() == std::vector<float>(3, 0));
        CHECK((bits(net.param("second.0")) == before.at("second.0")));
        CHECK((bits(net.param("first.0")) != before.at("first.0")));
    }
}

TEST_CASE("a network with nothing to train can be stepped", "[gradients]") {
    std::string json = three_losses(R"("loss_class")");
    for (std::size_t at = 0; (at = json.find("\"type\"", at)) != std::string::npos; at += 30)
        json.insert(at, "\"frozen\": true, ");
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, json, training());
        Solver solver(net, {});
        feed_three(net);
        const auto before = all_bits(net);
        solver.step();
        CHECK(solver.steps() == 1);
        CHECK((all_bits(net) == before));
        CHECK(net.output("loss_class").to_floats().at(0) > 0);
    }
}

TEST_CASE("an update that the program calls off leaves everything as it was", "[gradients]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, small_network, training());
        Solver solver(net, {});
        feed_small_network(net, 0);
        solver.step();
        const auto before = all_bits(net);
        feed_small_network(net, 1);
        CHECK_FALSE(solver.step_if([] { return false; }));
        CHECK(solver.steps() == 1);
        // Running statistics belong to the parameters: a batch of NaN must not change them.
        CHECK((all_bits(net) == before));
        CHECK(solver.step_if([] { return true; }));
        CHECK((all_bits(net) != before));
        // Nor does searching for the first NaN change anything.
        const auto stepped = all_bits(net);
        CHECK(net.first_nan().empty());
        std::vector<float> poison(4 * 3 * 8 * 8, 0.5f);
        poison[5] = std::numeric_limits<float>::quiet_NaN();
        set_floats(net, "data", poison);
        CHECK(net.first_nan() == "conv");
        CHECK((all_bits(net) == stepped));
    }
}
