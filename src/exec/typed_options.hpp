// SPDX-License-Identifier: MIT
// The structs of dlprim/op_options.hpp as options of eager calls. A call with a struct builds no
// text: it is looked up by the bytes of the struct's fields.
#pragma once

#include "base/schema.hpp"
#include "exec/known_options.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace dlprim {

/// Hands the bytes of a field to `take(from, count)`. What has no fixed size stands behind its
/// size.
template <typename T, typename Take>
void take_bytes(const T& value, Take&& take) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
        take(&value, sizeof(value));
    } else if constexpr (std::is_same_v<T, ops::IntList>) {
        const auto values = value.values();
        const auto count = static_cast<std::uint8_t>(values.size());
        take(&count, 1);
        take(values.data(), values.size_bytes());
    } else if constexpr (requires { value.has_value(); }) {
        take_bytes(value.has_value(), take);
        if (value) take_bytes(*value, take);
    } else {
        take_bytes(value.size(), take);
        take(value.data(), value.size() * sizeof(*value.data()));
    }
}

/// The options of a struct for eager calls. Equal structs have equal options.
template <typename Options>
std::shared_ptr<const EagerOptions> typed_options(const Options& options) {
    static auto* known = new KnownOptions;  // never destroyed: destructors of statics may call
    thread_local std::string key;
    const auto take_all = [&](auto&& take) {
        each_option<Options>([&](const auto& row) { take_bytes(options.*row.field, take); });
    };
    std::size_t bytes = 0;
    take_all([&](const void*, std::size_t count) { bytes += count; });
    key.resize(bytes);
    char* at = key.data();
    take_all([&](const void* from, std::size_t count) {
        if (count > 0) std::memcpy(at, from, count);
        at += count;
    });
    return known->find(key, [&] { return attrs_of(options); });
}

}  // namespace dlprim
