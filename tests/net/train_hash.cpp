// SPDX-License-Identifier: MIT
// Trains a small network for a few steps and prints a single hash of all parameters' bits. It is a
// separate program, so that determinism_test can run it in other processes and with other kernel
// caches.
//
//   net_train_hash DEVICE
#include <dlprim/dlprim.hpp>

#include <cstdint>
#include <iostream>
#include <vector>

namespace {

const char* const network = R"({
  "inputs": [{"name": "data", "shape": [6, 3, 12, 12]},
             {"name": "label", "shape": [6], "dtype": "int"}],
  "outputs": ["scores", "loss"],
  "operators": [
    {"name": "conv", "type": "Convolution2D", "inputs": ["data"], "outputs": ["conv"],
     "options": {"channels_out": 16, "kernel": 3, "pad": 1, "bias": false}},
    {"name": "bn", "type": "BatchNorm", "inputs": ["conv"], "outputs": ["bn"]},
    {"name": "relu", "type": "Activation", "inputs": ["bn"], "outputs": ["relu"],
     "options": {"activation": "relu"}},
    {"name": "pool", "type": "Pooling2D", "inputs": ["relu"], "outputs": ["pool"],
     "options": {"kernel": 2, "stride": 2}},
    {"name": "drop", "type": "Dropout", "inputs": ["pool"], "outputs": ["drop"]},
    {"name": "scores", "type": "InnerProduct", "inputs": ["drop"], "outputs": ["scores"],
     "options": {"outputs": 10}},
    {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["scores", "label"], "outputs": ["loss"]}
  ]
})";

/// A generator of our own, which gives the same numbers with every standard library.
class Random {
  public:
    float next() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<float>(state_ >> 40) / 8388608.0f - 1;
    }

  private:
    std::uint64_t state_ = 1;
};

std::uint64_t hash_of(dlprim::Net& net) {
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (const std::string& name : net.param_names()) {
        const dlprim::Tensor param = net.param(name);
        std::vector<unsigned char> bytes(param.bytes());
        param.copy_to_host(bytes.data(), bytes.size());
        for (const unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211u;
    }
    return hash;
}

}  // namespace

int main(int count, char** words) try {
    if (count != 2) {
        std::cerr << "usage: net_train_hash DEVICE\n";
        return 2;
    }
    const dlprim::Context device(words[1]);
    dlprim::NetOptions options;
    options.mode = dlprim::Mode::training;
    options.seed = 3;
    dlprim::Net net = dlprim::Net::from_json(device, network, options);
    dlprim::SolverOptions adam;
    adam.clip_norm = 1;
    dlprim::Solver solver(net, adam);
    net.initialize();
    Random random;
    std::vector<float> data(6 * 3 * 12 * 12);
    std::vector<std::int32_t> labels(6);
    for (int step = 0; step < 6; ++step) {
        for (float& value : data) value = random.next();
        for (std::size_t i = 0; i < 6; ++i) labels[i] = (step + static_cast<int>(i) * 3) % 10;
        net.set_input("data", data.data(), data.size() * sizeof(float));
        net.set_input("label", labels.data(), labels.size() * sizeof(std::int32_t));
        solver.step();
    }
    std::cout << std::hex << hash_of(net) << ' ' << std::dec << device.counters().compiles << ' '
              << device.counters().cache_hits << '\n';
    return 0;
} catch (const dlprim::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
