// SPDX-License-Identifier: MIT
// Structs of options (dlprim/option_table.hpp) as schemas and as attributes: everything here
// follows from a struct's table of fields.
#pragma once

#include "base/attrs.hpp"

#include <dlprim/dtype.hpp>
#include <dlprim/option_table.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// The table of a struct.
template <typename Options>
inline constexpr auto option_rows = Options::fields();

/// Calls `visit` with each row.
template <typename Options, typename Visit>
void each_option(Visit&& visit) {
    option_rows<Options>.each(visit);
}

// A field's value as an attribute. A field without a value becomes what no option can be given as:
// NaN, the smallest integer or an empty text.
Attr attr_of(bool value);
Attr attr_of(std::int64_t value);
Attr attr_of(double value);
Attr attr_of(const std::string& value);
Attr attr_of(const Ints& values);
Attr attr_of(const Doubles& values);
Attr attr_of(const ops::IntList& list);
Attr attr_of(DType dtype);
Attr attr_of(const std::vector<DType>& dtypes);
Attr attr_of(const std::optional<double>& value);
Attr attr_of(const std::optional<std::int64_t>& value);
Attr attr_of(const std::optional<DType>& value);

// And back.
void read(bool& value, const Attrs& attrs, std::string_view name);
void read(std::int64_t& value, const Attrs& attrs, std::string_view name);
void read(double& value, const Attrs& attrs, std::string_view name);
void read(std::string& value, const Attrs& attrs, std::string_view name);
void read(Ints& values, const Attrs& attrs, std::string_view name);
void read(Doubles& values, const Attrs& attrs, std::string_view name);
void read(ops::IntList& list, const Attrs& attrs, std::string_view name);
void read(DType& value, const Attrs& attrs, std::string_view name);
void read(std::vector<DType>& dtypes, const Attrs& attrs, std::string_view name);
void read(std::optional<double>& value, const Attrs& attrs, std::string_view name);
void read(std::optional<std::int64_t>& value, const Attrs& attrs, std::string_view name);
void read(std::optional<DType>& value, const Attrs& attrs, std::string_view name);

/// The struct that completed attributes say. An option that they lack keeps the struct's value:
/// those of a gradient lack some of the forward operator's.
template <typename Options>
Options read(const Attrs& attrs) {
    Options options;
    each_option<Options>([&](const auto& row) {
        if (attrs.has(row.text.name)) read(options.*row.field, attrs, row.text.name);
    });
    return options;
}

/// The options that differ from their defaults, as JSON would give them. A required option of which
/// the struct says nothing is missing here, too.
template <typename Options>
Attrs attrs_of(const Options& options) {
    [[maybe_unused]] static const Options defaults;
    Attrs attrs;
    each_option<Options>([&](const auto& row) {
        if (!(options.*row.field == defaults.*row.field))
            attrs.set(row.text.name, attr_of(options.*row.field));
    });
    return attrs;
}

/// The schema that a struct declares.
template <typename Options>
const Schema& schema_of() {
    static const Schema schema = [] {
        [[maybe_unused]] const Options defaults;
        Schema made = [] {
            if constexpr (requires { Options::takes; })
                return Schema(Options::takes, Options::group);
            else
                return Schema();
        }();
        each_option<Options>(
            [&](const auto& row) { made.add(attr_of(defaults.*row.field), row.text); });
        return made;
    }();
    return schema;
}

template <typename Struct, typename Value>
Struct owner_of(Value Struct::*field);

/// What the text of an option of several choices chooses, where the enumeration lists them in the
/// order of the table: `chosen<Method, &ops::Resize::method>(attrs)`.
template <typename Enum, auto field>
Enum chosen(const Attrs& attrs) {
    constexpr std::string_view name = ops::field_name<field>();
    std::size_t position = 0;
    each_option<decltype(owner_of(field))>([&](const auto& row) {
        if (row.text.name == name) position = choice_of(row.text, attrs.text(name));
    });
    return static_cast<Enum>(position);
}

}  // namespace dlprim
