// SPDX-License-Identifier: MIT
// A first program: trains a small network to tell points inside a circle from points outside.
#include <dlprim/dlprim.hpp>

#include <cstdint>
#include <iostream>
#include <random>
#include <vector>

const char* const description = R"({
  "inputs": [{"name": "data", "shape": [64, 2]},
             {"name": "label", "shape": [64], "dtype": "int"}],
  "outputs": ["scores", "loss"],
  "operators": [
    {"name": "hidden", "type": "InnerProduct", "inputs": ["data"], "outputs": ["hidden"],
     "options": {"outputs": 32, "activation": "relu"}},
    {"name": "scores", "type": "InnerProduct", "inputs": ["hidden"], "outputs": ["scores"],
     "options": {"outputs": 2}},
    {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["scores", "label"], "outputs": ["loss"]}
  ]
})";

int main(int argc, char** argv) try {
    const dp::Context device(argc > 1 ? argv[1] : "");  // the best OpenCL device, else the host
    std::cout << "on " << device.info().str() << '\n';

    dp::NetOptions how;
    how.mode = dp::Mode::training;
    dp::Net net = dp::Net::from_json(device, description, how);
    net.initialize();
    dp::SolverOptions adam;
    adam.learning_rate = 0.01;
    dp::Solver solver(net, adam);

    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> points(64 * 2);
    std::vector<std::int32_t> labels(64);
    for (int step = 1; step <= 500; ++step) {
        for (int i = 0; i < 64; ++i) {
            const float x = points[2 * i] = uniform(random),
                        y = points[2 * i + 1] = uniform(random);
            labels[i] = x * x + y * y < 0.5f;
        }
        net.set_input("data", points.data(), points.size() * sizeof(float));
        net.set_input("label", labels.data(), labels.size() * sizeof(std::int32_t));
        solver.step();  // forward, backward, update; returns at once
        if (step % 100 == 0)
            std::cout << "step " << step << ", loss " << net.output("loss").to_floats()[0] << '\n';
    }

    const std::vector<float> scores = net.output("scores").to_floats();
    int right = 0;
    for (int i = 0; i < 64; ++i) right += (scores[2 * i + 1] > scores[2 * i]) == (labels[i] == 1);
    std::cout << right << " of 64 right\n";
    return right >= 58 ? 0 : 1;
} catch (const dp::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
