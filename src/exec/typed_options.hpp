// SPDX-License-Identifier: MIT
// The structs of dlprim/op_options.hpp as attributes. A call with a struct builds no text: it is
// looked up by the bytes of the struct's fields.
#pragma once

#include "base/attrs.hpp"
#include "exec/known_options.hpp"
#include "exec/option_fields.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace dlprim {

template <typename T>
Attr attr_of(const T& value) {
    return value;
}
template <typename T>
Attr attr_of(const std::optional<T>& value);
inline Attr attr_of(const ops::IntList& list) {
    const auto values = list.values();
    if (values.size() == 1) return values[0];
    return Ints(values.begin(), values.end());
}
inline Attr attr_of(DType dtype) {
    return std::string(name_of(dtype));
}
inline Attr attr_of(const std::vector<DType>& dtypes) {
    Strings names;
    for (const DType dtype : dtypes) names.emplace_back(name_of(dtype));
    return names;
}
template <typename T>
Attr attr_of(const std::optional<T>& value) {
    return attr_of(value.value());
}

/// The options that differ from their defaults, as JSON would give them. A required option of which
/// the struct says nothing is missing here, too.
template <typename Options>
Attrs attrs_of(const Options& options) {
    Attrs attrs;
    if constexpr (!option_names<Options>.empty()) {
        static const Options defaults;
        const auto set = [&](std::string_view name, const auto& value, const auto& unset) {
            if (!(value == unset)) attrs.set(name, attr_of(value));
        };
        const auto set_all = [&]<std::size_t... i>(std::index_sequence<i...>) {
            (set(option_names<Options>[i], std::get<i>(option_fields(options)),
                 std::get<i>(option_fields(defaults))),
             ...);
        };
        set_all(std::make_index_sequence<option_names<Options>.size()>());
    }
    return attrs;
}

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
        std::apply([&](const auto&... field) { (take_bytes(field, take), ...); },
                   option_fields(options));
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
