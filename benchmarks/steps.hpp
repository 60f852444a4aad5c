// SPDX-License-Identifier: MIT
// What benchmarks of training steps share: inputs, and the median of times.
#pragma once

#include <dlprim/net.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// Fills inputs of floats with the same numbers from -1 to 1 each time. Labels stay 0.
inline void set_inputs(dlprim::Net& net) {
    for (const std::string& name : net.input_names()) {
        dlprim::Tensor input = net.input(name);
        if (input.dtype() != dlprim::DType::f32) continue;
        std::vector<float> values(static_cast<std::size_t>(input.shape().numel()));
        std::uint32_t state = 1;
        for (float& value : values) {
            state = state * 1664525 + 1013904223;
            value = static_cast<float>(state >> 8) / 8388608.0f - 1;
        }
        input.copy_from(values);
    }
}
