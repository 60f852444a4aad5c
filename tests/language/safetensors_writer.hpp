// SPDX-License-Identifier: MIT
// Files of the format safetensors for tests, and the values of the tensors of golden_models.py.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::testing {

/// A file of a header, which may be wrong, and data.
inline std::string safetensors(std::string_view header, std::string_view data) {
    const std::uint64_t length = header.size();
    std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
    bytes += header;
    bytes += data;
    return bytes;
}

/// Uniform numbers by a linear congruential generator, as golden_models.py makes them.
inline std::vector<float> uniform_values(std::uint32_t seed, std::size_t count, double mean,
                                         double scale) {
    std::vector<float> values(count);
    for (float& value : values) {
        seed = seed * 1664525u + 1013904223u;
        value = static_cast<float>(mean + scale * ((seed >> 8) / 16777216.0 - 0.5));
    }
    return values;
}

inline std::string bytes_of(const std::vector<float>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

}  // namespace dlprim::testing
