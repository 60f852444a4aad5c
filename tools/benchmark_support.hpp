// SPDX-License-Identifier: MIT
// What measures batches of a network: times, their spread, and data for inputs.
#pragma once

#include <dlprim/dlprim.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace dlprim::tools {

using Clock = std::chrono::steady_clock;

inline double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

inline double mib(std::uint64_t bytes) {
    return static_cast<double>(bytes) / (1 << 20);
}

struct Spread {
    double median = 0, min = 0, max = 0;
};

inline Spread spread_of(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    const std::size_t n = times.size();
    return {(times[(n - 1) / 2] + times[n / 2]) / 2, times.front(), times.back()};
}

/// Runs a batch: a step of the solver if there is one, else forward, and perhaps backward.
template <typename AnyNet, typename AnySolver>
void run_batch(AnyNet& net, AnySolver* solver, bool backward) {
    if (solver != nullptr) return solver->step();
    net.forward();
    if (backward) net.backward();
}

/// Host data for each input of a Net or a PlacedNet: normal numbers for float tensors, any of their
/// classes for labels and indices, zeros for other integers.
template <typename AnyNet>
std::map<std::string, std::vector<std::byte>> make_inputs(AnyNet& net) {
    std::map<std::string, std::vector<std::byte>> inputs;
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (const std::string& name : net.input_names()) {
        const Shape shape = net.input_shape(name);
        const DType dtype = net.input_dtype(name);
        std::vector<float> values(static_cast<std::size_t>(shape.numel()), 0.0f);
        // Floats hold whole numbers up to 2^24.
        const std::int64_t classes = std::min<std::int64_t>(net.label_classes(name), 1 << 24);
        if (classes > 0)
            for (float& value : values) value = static_cast<float>(random() % classes);
        else if (is_float(dtype))
            for (float& value : values) value = normal(random);
        std::vector<std::byte> data(values.size() * size_of(dtype));
        convert(values.data(), DType::f32, data.data(), dtype, values.size());
        inputs[name] = std::move(data);
    }
    return inputs;
}

}  // namespace dlprim::tools
