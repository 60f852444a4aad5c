// SPDX-License-Identifier: MIT
// Networks on several devices for tests, what they are fed, and the bits of what they compute.
#pragma once

#include "net/support.hpp"

#include <dlprim/placed_net.hpp>

#include <map>
#include <string>
#include <vector>

namespace dlprim::testing {

/// The network with the devices of these operators.
inline std::string placed(std::string json, const std::map<std::string, std::string>& device_of) {
    for (const auto& [op, device] : device_of) {
        const std::string name = "{\"name\": \"" + op + "\", \"type\"";
        const std::size_t at = json.find(name);
        REQUIRE(at != std::string::npos);
        json.insert(at + 1, "\"device\": \"" + device + "\", ");
    }
    return json;
}

/// A residual block: what `relu` makes is read by `conv2`, and by the sum behind that.
inline const char* const residual = R"({
  "inputs": [{"name": "data", "shape": [4, 3, 8, 8]},
             {"name": "label", "shape": [4], "dtype": "int"}],
  "outputs": ["scores", "loss"],
  "operators": [
    {"name": "conv1", "type": "Convolution2D", "inputs": ["data"], "outputs": ["conv1"],
     "options": {"channels_out": 16, "kernel": 3, "pad": 1, "bias": false}},
    {"name": "relu", "type": "Activation", "inputs": ["conv1"], "outputs": ["relu"],
     "options": {"activation": "relu"}},
    {"name": "conv2", "type": "Convolution2D", "inputs": ["relu"], "outputs": ["conv2"],
     "options": {"channels_out": 16, "kernel": 3, "pad": 1, "bias": false}},
    {"name": "bn", "type": "BatchNorm", "inputs": ["conv2"], "outputs": ["bn"]},
    {"name": "sum", "type": "Elementwise", "inputs": ["bn", "relu"], "outputs": ["sum"],
     "options": {"operation": "sum"}},
    {"name": "pool", "type": "GlobalPooling", "inputs": ["sum"], "outputs": ["pool"]},
    {"name": "scores", "type": "InnerProduct", "inputs": ["pool"], "outputs": ["scores"],
     "options": {"outputs": 5}},
    {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["scores", "label"], "outputs": ["loss"]}
  ]
})";

/// What `stem` makes is read by four operators, so that its gradient is a sum of four.
inline const char* const branches = R"({
  "inputs": [{"name": "data", "shape": [4, 6]}, {"name": "target", "shape": [4, 3]}],
  "outputs": ["y", "loss"],
  "operators": [
    {"name": "stem", "type": "InnerProduct", "inputs": ["data"], "outputs": ["stem"],
     "options": {"outputs": 7, "activation": "tanh"}},
    {"name": "one", "type": "InnerProduct", "inputs": ["stem"], "outputs": ["one"],
     "options": {"outputs": 3}},
    {"name": "two", "type": "InnerProduct", "inputs": ["stem"], "outputs": ["two"],
     "options": {"outputs": 3}},
    {"name": "three", "type": "InnerProduct", "inputs": ["stem"], "outputs": ["three"],
     "options": {"outputs": 3}},
    {"name": "four", "type": "InnerProduct", "inputs": ["stem"], "outputs": ["four"],
     "options": {"outputs": 3}},
    {"name": "left", "type": "Elementwise", "inputs": ["one", "two"], "outputs": ["left"]},
    {"name": "right", "type": "Elementwise", "inputs": ["three", "four"], "outputs": ["right"]},
    {"name": "y", "type": "Elementwise", "inputs": ["left", "right"], "outputs": ["y"]},
    {"name": "mse", "type": "MSELoss", "inputs": ["y", "target"], "outputs": ["loss"]}
  ]
})";

struct Example {
    const char* json;
    std::map<std::string, std::string> device_of;
};

/// A chain with batch norm and dropout, the residual block with its middle elsewhere, and the
/// branches by turns on two devices.
inline std::vector<Example> examples() {
    return {{small_network, {{"hidden", "b"}, {"drop", "b"}}},
            {residual, {{"conv2", "b"}, {"bn", "b"}}},
            {branches, {{"two", "b"}, {"four", "b"}, {"right", "b"}}}};
}

template <typename AnyNet>
void feed(AnyNet& net, unsigned number) {
    for (const std::string& name : net.input_names()) {
        const auto count = static_cast<std::size_t>(net.input_shape(name).numel());
        if (name == "label") {
            std::vector<std::int32_t> labels(count);
            for (std::size_t i = 0; i < count; ++i)
                labels[i] = static_cast<std::int32_t>((i * 3 + number) % 5);
            net.set_input(name, labels.data(), count * sizeof(std::int32_t));
        } else {
            const auto values = random_floats(count, 100 + number);
            net.set_input(name, values.data(), count * sizeof(float));
        }
    }
}

template <typename AnyNet>
std::map<std::string, Bytes> bits_of_params(AnyNet& net) {
    std::map<std::string, Bytes> all;
    for (const std::string& name : net.param_names()) all[name] = net.read_param(name).data;
    return all;
}

/// Outputs, and gradients of trained parameters and of float inputs.
template <typename AnyNet>
std::map<std::string, Bytes> bits_of_results(AnyNet& net, bool gradients) {
    std::map<std::string, Bytes> all;
    for (const std::string& name : net.output_names()) all[name] = bits(net.output(name));
    if (!gradients) return all;
    for (const std::string& name : net.param_names())
        if (net.is_trainable(name)) all["d " + name] = bits(net.gradient(name));
    for (const std::string& name : net.input_names())
        if (is_float(net.input_dtype(name))) all["d " + name] = bits(net.gradient(name));
    return all;
}

inline void check_same(const std::map<std::string, Bytes>& a,
                       const std::map<std::string, Bytes>& b) {
    REQUIRE(a.size() == b.size());
    for (const auto& [name, value] : a) {
        INFO(name);
        CHECK((b.at(name) == value));
    }
}

inline std::vector<NamedDevice> two_like(const Context& device) {
    const std::vector<Context> both = contexts_like(device, 2);
    return {{"a", both[0]}, {"b", both[1]}};
}

}  // namespace dlprim::testing
