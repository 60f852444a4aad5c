// SPDX-License-Identifier: MIT
// A network of two layers whose gradient is written by hand in double: the reference for solvers.
//
//   hidden = tanh(data weight1^T + bias1), y = hidden weight2^T + bias2, loss = mean((y -
//   target)^2)
#pragma once

#include "net/support.hpp"

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace dlprim::testing {

struct TwoLayers {
    static constexpr std::size_t inputs = 3, hidden = 5, outputs = 2;
    using Params = std::vector<std::vector<double>>;  ///< in the network's order
    static constexpr const char* names[] = {"first.0", "first.1", "second.0", "second.1"};

    static std::string json(std::size_t batch) {
        const std::string n = std::to_string(batch);
        return R"({"inputs": [{"name": "data", "shape": [)" + n + R"(, 3]},
                              {"name": "target", "shape": [)" +
               n + R"(, 2]}],
          "outputs": ["y", "loss"],
          "operators": [
            {"name": "first", "type": "InnerProduct", "inputs": ["data"], "outputs": ["hidden"],
             "options": {"outputs": 5, "activation": "tanh"}},
            {"name": "second", "type": "InnerProduct", "inputs": ["hidden"], "outputs": ["y"],
             "options": {"outputs": 2}},
            {"name": "mse", "type": "MSELoss", "inputs": ["y", "target"], "outputs": ["loss"]}]})";
    }

    static Params gradient(const Params& p, const std::vector<float>& data,
                           const std::vector<float>& target) {
        Params g;
        for (const auto& param : p) g.emplace_back(param.size(), 0.0);
        const std::size_t batch = data.size() / inputs;
        for (std::size_t n = 0; n < batch; ++n) {
            double h[hidden], dh[hidden] = {};
            for (std::size_t j = 0; j < hidden; ++j) {
                double sum = p[1][j];
                for (std::size_t i = 0; i < inputs; ++i)
                    sum += p[0][j * inputs + i] * data[n * inputs + i];
                h[j] = std::tanh(sum);
            }
            for (std::size_t o = 0; o < outputs; ++o) {
                double y = p[3][o];
                for (std::size_t j = 0; j < hidden; ++j) y += p[2][o * hidden + j] * h[j];
                const double dy =
                    2 * (y - target[n * outputs + o]) / static_cast<double>(batch * outputs);
                g[3][o] += dy;
                for (std::size_t j = 0; j < hidden; ++j) {
                    g[2][o * hidden + j] += dy * h[j];
                    dh[j] += dy * p[2][o * hidden + j];
                }
            }
            for (std::size_t j = 0; j < hidden; ++j) {
                const double dz = dh[j] * (1 - h[j] * h[j]);
                g[1][j] += dz;
                for (std::size_t i = 0; i < inputs; ++i)
                    g[0][j * inputs + i] += dz * data[n * inputs + i];
            }
        }
        return g;
    }
};

/// Feeds four examples, which are the same everywhere for a given number.
inline void feed_two_layers(Net& net, unsigned number) {
    set_floats(net, "data", random_floats(4 * TwoLayers::inputs, 10 + number));
    set_floats(net, "target", random_floats(4 * TwoLayers::outputs, 50 + number));
}

}  // namespace dlprim::testing
