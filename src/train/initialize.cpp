// SPDX-License-Identifier: MIT
// initial_values.
#include "train/initialize.hpp"

#include "base/hash.hpp"
#include "base/philox.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim {

namespace {

Init chosen_init(const Value& parameter, std::string_view method) {
    Init init = parameter.init;
    check_initialization(method);
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

void check_initialization(std::string_view method) {
    require(method == "default" || method == "he" || method == "xavier",
            "there is no initialisation '", method, "'; there are default, he and xavier");
}

void initial_values(const Value& parameter, std::string_view method, std::uint64_t seed,
                    HostPool& pool, std::span<float> values) {
    const Init init = chosen_init(parameter, method);
    const std::int64_t count = parameter.spec.shape.numel();
    if (init.kind == Init::Kind::constant)
        return std::fill(values.begin(), values.end(), static_cast<float>(init.a));
    const std::uint64_t name = hash64(parameter.name);
    const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(seed),
                                           static_cast<std::uint32_t>(seed >> 32)};
    // Each counter makes four values, so that every division of the work gives the same values.
    pool.parallel_for((count + 3) / 4, 4096, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const auto words =
                philox({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32),
                        static_cast<std::uint32_t>(name), static_cast<std::uint32_t>(name >> 32)},
                       key);
            double made[4];
            if (init.kind == Init::Kind::uniform) {
                for (int k = 0; k < 4; ++k)
                    made[k] = init.a + (init.b - init.a) *
                                           uniform_from_bits(words[static_cast<std::size_t>(k)]);
            } else {
                const auto first = normals_from_bits(words[0], words[1]);
                const auto second = normals_from_bits(words[2], words[3]);
                for (int k = 0; k < 4; ++k)
                    made[k] =
                        init.a + init.b * (k < 2 ? first : second)[static_cast<std::size_t>(k % 2)];
            }
            for (std::int64_t k = 0; k < 4 && 4 * i + k < count; ++k)
                values[static_cast<std::size_t>(4 * i + k)] = static_cast<float>(made[k]);
        }
    });
    std::fill_n(values.begin() + init.zero, init.zeros, 0.0f);
}

}  // namespace dlprim
