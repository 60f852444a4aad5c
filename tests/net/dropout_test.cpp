// SPDX-License-Identifier: MIT
// Dropout's masks: equal for the same seed and step on every device, different for others, and none
// outside training.
#include "net/support.hpp"

#include <algorithm>
#include <cmath>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

constexpr std::size_t dropped_size = 40 * 500;

std::string dropout_json(const std::string& name) {
    return R"({"inputs": [{"name": "data", "shape": [40, 500]}],
      "outputs": ["y", {"name": "squares", "loss_weight": 1}],
      "operators": [
        {"name": ")" +
           name + R"(", "type": "Dropout", "inputs": ["data"], "outputs": ["y"],
         "options": {"p": 0.3}},
        {"name": "sum", "type": "Reduction", "inputs": ["y"], "outputs": ["squares"],
         "options": {"method": "sumsq"}}]})";
}

NetOptions options_of(std::uint64_t seed) {
    NetOptions options = training(seed);
    options.input_gradients = true;
    return options;
}

/// The mask, from a network whose input is ones: 0 where an element was dropped.
std::vector<float> mask(Net& net) {
    set_floats(net, "data", std::vector<float>(dropped_size, 1));
    net.forward();
    return net.output("y").to_floats();
}

double share_of_zeros(const std::vector<float>& values) {
    return static_cast<double>(std::count(values.begin(), values.end(), 0.0f)) /
           static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("a mask is that of its seed and step on every device", "[dropout]") {
    std::vector<std::vector<float>> first;
    for (const Context& device : test_devices()) {
        INFO("on " << device.info().name);
        Net net = make_net(device, dropout_json("drop"), options_of(5));
        Net twin = make_net(device, dropout_json("drop"), options_of(5));
        std::vector<std::vector<float>> masks;
        for (int step = 0; step < 3; ++step) {
            masks.push_back(mask(net));
            CHECK((mask(twin) == masks.back()));
        }
        // Independent masks of 30 % agree in 0.3^2 + 0.7^2 of the elements.
        for (int a = 0; a < 3; ++a) {
            CHECK(share_of_zeros(masks[a]) == Approx(0.3).margin(0.02));
            for (int b = 0; b < a; ++b) {
                std::size_t same = 0;
                for (std::size_t i = 0; i < dropped_size; ++i) same += masks[a][i] == masks[b][i];
                CHECK(static_cast<double>(same) / dropped_size == Approx(0.58).margin(0.02));
            }
        }
        if (first.empty()) first = masks;
        CHECK((masks == first));
        for (const float value : masks[0])
            if (value != 0) REQUIRE(value == Approx(1 / 0.7));
    }
}

TEST_CASE("seeds and names make masks of their own", "[dropout]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, dropout_json("drop"), options_of(5));
        Net other_name = make_net(device, dropout_json("other"), options_of(5));
        Net other_seed = make_net(device, dropout_json("drop"), options_of(6));
        const auto made = mask(net);
        CHECK((mask(other_name) != made));
        CHECK((mask(other_seed) != made));
        // All 64 bits of a seed matter.
        constexpr std::uint64_t large = std::uint64_t{1} << 60;
        Net one = make_net(device, dropout_json("drop"), options_of(large));
        Net two = make_net(device, dropout_json("drop"), options_of(large + 1));
        Net largest = make_net(device, dropout_json("drop"), options_of(~std::uint64_t{0}));
        const auto of_one = mask(one);
        CHECK((mask(two) != of_one));
        CHECK(share_of_zeros(mask(largest)) == Approx(0.3).margin(0.02));
    }
}

TEST_CASE("backward drops what forward dropped", "[dropout]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, dropout_json("drop"), options_of(9));
        for (int step = 0; step < 2; ++step) {
            const auto y = mask(net);
            net.backward();
            const auto gradient = net.gradient("data").to_floats();
            // y = m x, loss = sum(y^2): its gradient is 2 m y.
            for (std::size_t i = 0; i < dropped_size; ++i)
                REQUIRE(gradient[i] == Approx(2 * y[i] * y[i]).margin(1e-6));
        }
    }
}

TEST_CASE("outside training dropout changes nothing", "[dropout]") {
    ON_EVERY_DEVICE(device) {
        for (const Mode mode : {Mode::inference, Mode::evaluation}) {
            Net net = make_net(device, dropout_json("drop"), with_mode(mode));
            const auto data = random_floats(dropped_size, 3);
            set_floats(net, "data", data);
            net.forward();
            CHECK((net.output("y").to_floats() == data));
        }
    }
}

TEST_CASE("an eager dropout is the network's", "[dropout]") {
    ON_EVERY_DEVICE(device) {
        ops::CallOptions call{.training = true, .seed = (std::uint64_t{1} << 60) + 1, .step = 7};
        const Tensor ones(device, Shape{40, 500}, std::vector<float>(dropped_size, 1));
        const auto y = ops::call("Dropout", R"({"p": 0.3})", {ones}, {}, call).at(0).to_floats();
        CHECK(share_of_zeros(y) == Approx(0.3).margin(0.02));
        CHECK((ops::call("Dropout", R"({"p": 0.3})", {ones}, {}, call).at(0).to_floats() == y));
        call.step = 8;
        CHECK((ops::call("Dropout", R"({"p": 0.3})", {ones}, {}, call).at(0).to_floats() != y));
        call.step = 7;
        call.seed -= 1;
        CHECK((ops::call("Dropout", R"({"p": 0.3})", {ones}, {}, call).at(0).to_floats() != y));
    }
}
