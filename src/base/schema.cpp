// SPDX-License-Identifier: MIT
// Fields of structs of options as attributes, and back; see schema.hpp.
#include "base/schema.hpp"

#include <cmath>
#include <limits>

namespace dlprim {

Attr attr_of(bool value) {
    return value;
}

Attr attr_of(std::int64_t value) {
    return value;
}

Attr attr_of(double value) {
    return value;
}

Attr attr_of(const std::string& value) {
    return value;
}

Attr attr_of(const Ints& values) {
    return values;
}

Attr attr_of(const Doubles& values) {
    return values;
}

Attr attr_of(const ops::IntList& list) {
    return Ints(list.values().begin(), list.values().end());
}

Attr attr_of(DType dtype) {
    return std::string(name_of(dtype));
}

Attr attr_of(const std::vector<DType>& dtypes) {
    Strings names;
    for (const DType dtype : dtypes) names.emplace_back(name_of(dtype));
    return names;
}

Attr attr_of(const std::optional<double>& value) {
    return value.value_or(std::numeric_limits<double>::quiet_NaN());
}

Attr attr_of(const std::optional<std::int64_t>& value) {
    return value.value_or(std::numeric_limits<std::int64_t>::min());
}

Attr attr_of(const std::optional<DType>& value) {
    return value ? attr_of(*value) : std::string();
}

void read(bool& value, const Attrs& attrs, std::string_view name) {
    value = attrs.boolean(name);
}

void read(std::int64_t& value, const Attrs& attrs, std::string_view name) {
    value = attrs.integer(name);
}

void read(double& value, const Attrs& attrs, std::string_view name) {
    value = attrs.number(name);
}

void read(std::string& value, const Attrs& attrs, std::string_view name) {
    value = attrs.text(name);
}

void read(Ints& values, const Attrs& attrs, std::string_view name) {
    values = attrs.ints(name);
}

void read(Doubles& values, const Attrs& attrs, std::string_view name) {
    values = attrs.numbers(name);
}

void read(ops::IntList& list, const Attrs& attrs, std::string_view name) {
    list = ops::IntList(attrs.ints(name));
}

void read(DType& value, const Attrs& attrs, std::string_view name) {
    value = parse_dtype(attrs.text(name));
}

void read(std::vector<DType>& dtypes, const Attrs& attrs, std::string_view name) {
    dtypes.clear();
    for (const std::string& one : attrs.texts(name)) dtypes.push_back(parse_dtype(one));
}

void read(std::optional<double>& value, const Attrs& attrs, std::string_view name) {
    const double given = attrs.number(name);
    if (!std::isnan(given)) value = given;
}

void read(std::optional<std::int64_t>& value, const Attrs& attrs, std::string_view name) {
    const std::int64_t given = attrs.integer(name);
    if (given != std::numeric_limits<std::int64_t>::min()) value = given;
}

void read(std::optional<DType>& value, const Attrs& attrs, std::string_view name) {
    const std::string& given = attrs.text(name);
    if (!given.empty()) value = parse_dtype(given);
}

}  // namespace dlprim
