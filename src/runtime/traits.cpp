// SPDX-License-Identifier: MIT
// DLPRIM_TRAITS: treats a device as a smaller one, to test engines for devices that are not
// available.
#include "base/env.hpp"
#include "base/text.hpp"
#include "runtime/devices.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace dlprim {

void lower_traits(Traits& traits) {
    const auto text = env("DLPRIM_TRAITS");
    if (!text) return;
    static const std::vector<std::string> keys = {
        "max_work_group", "local_kib",        "max_alloc_mib", "global_mib",
        "vector_width",   "vector_registers", "compute_units", "fp64",
        "fp16",           "wide_vectors",     "wgmma",         "mma",
        "matrix_fp16",    "matrix_bf16",      "subgroup_size", "launch_ms"};
    for (const std::string& item : split(*text, ',')) {
        const std::size_t equals = item.find('=');
        const std::string key = item.substr(0, equals);
        require(std::find(keys.begin(), keys.end(), key) != keys.end(),
                "DLPRIM_TRAITS: unknown key '", key, "'", did_you_mean(key, keys),
                " (known: ", join(keys, ", "), ")");
        std::uint64_t value = 0;
        const char* begin = equals == std::string::npos ? nullptr : item.data() + equals + 1;
        const char* end = item.data() + item.size();
        const bool number =
            begin != nullptr && begin != end && std::from_chars(begin, end, value).ptr == end;
        require(number && value < (std::uint64_t{1} << 40), "DLPRIM_TRAITS: '", item, "' must be ",
                key, "=NUMBER");
        const auto lower = [&](auto& trait, std::uint64_t least) {
            using T = std::decay_t<decltype(trait)>;
            require(value >= least, "DLPRIM_TRAITS: ", key, " must be at least ", least);
            trait =
                static_cast<T>(std::min<std::uint64_t>(static_cast<std::uint64_t>(trait), value));
        };
        const auto lower_flag = [&](bool& trait) {
            require(value <= 1, "DLPRIM_TRAITS: ", key, " must be 0 or 1");
            trait = trait && value == 1;
        };
        if (key == "max_work_group") lower(traits.max_work_group, 1);
        if (key == "vector_width") lower(traits.vector_width, 1);
        if (key == "vector_registers") lower(traits.vector_registers, 1);
        if (key == "compute_units") lower(traits.compute_units, 1);
        if (key == "fp64") lower_flag(traits.fp64);
        if (key == "fp16") lower_flag(traits.fp16);
        if (key == "wgmma") lower_flag(traits.wgmma);
        if (key == "mma") lower_flag(traits.mma);
        if (key == "matrix_fp16") lower_flag(traits.matrix_fp16);
        if (key == "matrix_bf16") lower_flag(traits.matrix_bf16);
        if (key == "wide_vectors") lower_flag(traits.wide_vectors);
        if (key == "subgroup_size") {
            require(value == 0 || value == 8 || value == 16,
                    "DLPRIM_TRAITS: subgroup_size must be 0, 8 or 16");
            lower(traits.subgroup_size, 0);
        }
        if (key == "launch_ms") require(value >= 1, "DLPRIM_TRAITS: launch_ms must be at least 1");
        if (key == "local_kib") {
            value <<= 10;
            lower(traits.local_bytes, 0);
            lower(traits.mma_local_bytes, 0);
        }
        if (key == "max_alloc_mib") {
            value <<= 20;
            lower(traits.max_alloc_bytes, 1);
        }
        if (key == "global_mib") {
            value <<= 20;
            lower(traits.global_bytes, 1);
            lower(traits.max_alloc_bytes, 1);
        }
    }
}

double lower_launch_limit(double seconds) {
    constexpr std::string_view key = "launch_ms=";
    for (const std::string& item : split(env("DLPRIM_TRAITS").value_or(""), ',')) {
        if (!item.starts_with(key)) continue;
        const double most = leading_number<int>(item.substr(key.size()), 0) * 1e-3;
        seconds = seconds == 0 ? most : std::min(seconds, most);
    }
    return seconds;
}

}  // namespace dlprim
