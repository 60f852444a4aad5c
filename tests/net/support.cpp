// SPDX-License-Identifier: MIT
// What the tests of networks share.
#include "net/support.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace dlprim::testing {

Net make_net(const Context& device, std::string_view json, const NetOptions& options) {
    Net net = Net::from_json(device, json, options);
    net.initialize();
    return net;
}

std::vector<float> random_floats(std::size_t count, unsigned seed, double low, double high) {
    std::mt19937 random(seed);
    std::vector<float> values(count);
    for (float& value : values)
        value = static_cast<float>(low + (high - low) * (random() / 4294967296.0));
    return values;
}

void set_floats(Net& net, const std::string& input, const std::vector<float>& values) {
    net.set_input(input, values.data(), values.size() * sizeof(float));
}

void set_labels(Net& net, const std::string& input, const std::vector<std::int32_t>& values) {
    net.set_input(input, values.data(), values.size() * sizeof(std::int32_t));
}

Bytes bits(const Tensor& tensor) {
    Bytes bytes(tensor.bytes());
    tensor.copy_to_host(bytes.data(), bytes.size());
    return bytes;
}

std::map<std::string, Bytes> all_bits(Net& net) {
    std::map<std::string, Bytes> all;
    for (const std::string& name : net.param_names()) all[name] = bits(net.param(name));
    return all;
}

void copy_params(Net& from, Net& to) {
    for (const std::string& name : from.param_names()) {
        const Bytes bytes = bits(from.param(name));
        to.param(name).copy_from_host(bytes.data(), bytes.size());
    }
    to.params_changed();
}

void check_close(const std::vector<float>& found, const std::vector<double>& expected,
                 double relative) {
    REQUIRE(found.size() == expected.size());
    double largest = 0;
    for (const double value : expected) largest = std::max(largest, std::fabs(value));
    std::size_t worst = 0;
    double difference = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        const double here = std::fabs(found[i] - expected[i]);
        if (here <= difference) continue;
        difference = here;
        worst = i;
    }
    for (const float value : found) REQUIRE(std::isfinite(value));
    INFO("element " << worst << " is " << found[worst] << ", expected " << expected[worst]
                    << ", the largest is " << largest);
    CHECK(difference <= relative * largest);
}

NetOptions training(std::uint64_t seed) {
    return {.mode = Mode::training, .seed = seed};
}

NetOptions with_mode(Mode mode) {
    return {.mode = mode};
}

const char* const small_network = R"({
  "inputs": [{"name": "data", "shape": [4, 3, 8, 8]},
             {"name": "label", "shape": [4], "dtype": "int"}],
  "outputs": ["scores", "loss"],
  "operators": [
    {"name": "conv", "type": "Convolution2D", "inputs": ["data"], "outputs": ["conv"],
     "options": {"channels_out": 8, "kernel": 3, "pad": 1}},
    {"name": "bn", "type": "BatchNorm", "inputs": ["conv"], "outputs": ["bn"]},
    {"name": "relu", "type": "Activation", "inputs": ["bn"], "outputs": ["relu"],
     "options": {"activation": "relu"}},
    {"name": "pool", "type": "Pooling2D", "inputs": ["relu"], "outputs": ["pool"],
     "options": {"kernel": 2, "stride": 2}},
    {"name": "hidden", "type": "InnerProduct", "inputs": ["pool"], "outputs": ["hidden"],
     "options": {"outputs": 20, "activation": "relu"}},
    {"name": "drop", "type": "Dropout", "inputs": ["hidden"], "outputs": ["drop"]},
    {"name": "scores", "type": "InnerProduct", "inputs": ["drop"], "outputs": ["scores"],
     "options": {"outputs": 5}},
    {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["scores", "label"], "outputs": ["loss"]}
  ]
})";

void feed_small_network(Net& net, unsigned number) {
    const auto images = net.input_shape("data");
    set_floats(net, "data", random_floats(static_cast<std::size_t>(images.numel()), 100 + number));
    std::vector<std::int32_t> labels(static_cast<std::size_t>(images[0]));
    for (std::size_t i = 0; i < labels.size(); ++i)
        labels[i] = static_cast<std::int32_t>((i * 3 + number) % 5);
    set_labels(net, "label", labels);
}

}  // namespace dlprim::testing
