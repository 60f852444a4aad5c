// SPDX-License-Identifier: MIT
// initial_values.
#include "train/initialize.hpp"

#include "base/hash.hpp"
#include "base/philox.hpp"
#include "base/text.hpp"

#include <cmath>

namespace dlprim {

namespace {

Init chosen_init(const Value& parameter, std::string_view method) {
    Init init = parameter.init;
    require(method == "default" || method == "he" || method == "xavier", "there is no initialisation '", method,
            "'; there are default, he and xavier");
    if (method == "default" || init.fan_in <= 0 || init.kind == Init::Kind::constant) return init;
    if (method == "he") {
        init.kind = Init::Kind::normal;
        init.a = 0;
        init.b = std::sqrt(2.0 / static_cast<double>(init.fan_in));
    } else {
        init.kind = Init::Kind::uniform;
        init.b = std::sqrt(6.0 / static_cast<double>(init.fan_in + init.fan_out));
        init.a = -init.b;
    }
    return init;
}

}  // namespace

std::vector<float> initial_values(const Value& parameter, std::string_view method, std::uint64_t seed) {
    const Init init = chosen_init(parameter, method);
    const auto count = static_cast<std::size_t>(parameter.spec.shape.numel());
    std::vector<float> values(count);
    const std::uint64_t name = hash64(parameter.name);
    const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
    for (std::size_t i = 0; i < count; i += 4) {
        const auto words = philox({static_cast<std::uint32_t>(i / 4), static_cast<std::uint32_t>((i / 4) >> 32),
                                   static_cast<std::uint32_t>(name), static_cast<std::uint32_t>(name >> 32)},
                                  key);
        const auto first = normals_from_bits(words[0], words[1]);
        const auto second = normals_from_bits(words[2], words[3]);
        const double normals[4] = {first[0], first[1], second[0], second[1]};
        for (std::size_t k = 0; k < 4 && i + k < count; ++k) {
            double value = init.a;
            if (init.kind == Init::Kind::uniform) value = init.a + (init.b - init.a) * uniform_from_bits(words[k]);
            if (init.kind == Init::Kind::normal) value = init.a + init.b * normals[k];
            values[i + k] = static_cast<float>(value);
        }
    }
    return values;
}

}  // namespace dlprim
