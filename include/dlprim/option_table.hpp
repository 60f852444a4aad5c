// SPDX-License-Identifier: MIT
// What the structs of dlprim/op_options.hpp are made of: lists of integers, and the table of fields
// by which a struct says what its options are called and mean.
//
// The library reads options, checks them, fills in defaults and writes docs/json.md by these
// tables. A program that only sets fields needs nothing of them.
#pragma once

#include <dlprim/error.hpp>
#include <dlprim/namespace.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace dlprim::ops {

/// One integer or a list: `2`, or `{2, 1}`. For a kernel, stride, padding or dilation one integer
/// means both dimensions, a list of two is height and width, and a padding may also be
/// `{top, left, bottom, right}`. Empty means that the option is not given.
class IntList {
  public:
    static constexpr std::size_t most = 16;

    constexpr IntList() = default;
    constexpr IntList(std::int64_t value) : values_{value}, size_(1) {}
    /// Throws Error(invalid_argument) for more than `most` integers.
    IntList(std::initializer_list<std::int64_t> values)
        : IntList(std::span(values.begin(), values.size())) {}
    explicit IntList(std::span<const std::int64_t> values) : size_(values.size()) {
        if (values.size() > most)
            throw Error(ErrorKind::invalid_argument,
                        "a list in an operator's options has at most 16 integers, not " +
                            std::to_string(values.size()));
        std::copy(values.begin(), values.end(), values_.begin());
    }

    std::span<const std::int64_t> values() const noexcept { return {values_.data(), size_}; }
    bool empty() const noexcept { return size_ == 0; }
    /// Where it is one integer, the list of that integer for two dimensions.
    constexpr IntList for_two() const {
        IntList list = *this;
        if (size_ == 1) list.values_[list.size_++] = values_[0];
        return list;
    }
    bool operator==(const IntList&) const = default;

  private:
    std::array<std::int64_t, most> values_{};
    std::size_t size_ = 0;
};

/// What a table says about an option. Its kind follows from the field's type, and its default is
/// the field's initial value.
struct OptionText {
    std::string_view name, meaning;
    bool is_required = false;          ///< the field's initial value means that it is not given
    std::string_view other_name = {};  ///< under which JSON and Python take it, too
    double least =
        -std::numeric_limits<double>::infinity();  ///< of the number, or of all in a list
    double most = std::numeric_limits<double>::infinity();
    std::array<std::string_view, 6> choices = {};  ///< the texts that it may be; none: any
};

/// A row of a table: a field and its text.
template <typename Struct, typename Value>
struct Option {
    Value Struct::*field;
    OptionText text;

    /// Another name of the option, which JSON takes, too.
    constexpr Option also(std::string_view name) const {
        Option changed = *this;
        changed.text.other_name = name;
        return changed;
    }
    constexpr Option between(double least, double most) const {
        Option changed = *this;
        changed.text.least = least;
        changed.text.most = most;
        return changed;
    }
    constexpr Option at_least(double least) const { return between(least, text.most); }
    template <typename... Texts>
    constexpr Option one_of(Texts... texts) const {
        Option changed = *this;
        changed.text.choices = {std::string_view(texts)...};
        return changed;
    }
};

/// The name of a field, by which the compiler calls it in the name of this function.
template <auto field>
constexpr std::string_view field_name() {
    const std::string_view text = __PRETTY_FUNCTION__;  // "... [with auto field = &Pad::value; ..."
    const std::size_t begin = text.find("field = ");
    const std::string_view member = text.substr(begin, text.find_first_of(";]", begin) - begin);
    return member.substr(member.rfind(':') + 1);
}

template <typename Struct, typename Value>
constexpr Option<Struct, Value> option_row(Value Struct::*field, OptionText text) {
    return {field, text};
}

/// The row of an option of the field's name, `option<&PReLU::init>("the weight's first value")`.
template <auto field>
constexpr auto option(std::string_view meaning) {
    return option_row(field, {field_name<field>(), meaning});
}
/// The row of an option that has to be given.
template <auto field>
constexpr auto required(std::string_view meaning) {
    return option_row(field, {field_name<field>(), meaning, true});
}

/// The table of a struct: a row and the rows behind it. In place of std::tuple, whose constructors
/// would be compiled anew, for each struct, in every file that includes dlprim/op_options.hpp.
template <typename... Rows>
struct OptionTable;
template <>
struct OptionTable<> {
    template <typename Visit>
    constexpr void each(const Visit&) const {}
};
template <typename Row, typename... Rows>
struct OptionTable<Row, Rows...> {
    Row row;
    OptionTable<Rows...> behind;

    /// Calls `visit` with each row.
    template <typename Visit>
    constexpr void each(const Visit& visit) const {
        visit(row);
        behind.each(visit);
    }
};

/// The table of some rows.
constexpr OptionTable<> option_table() {
    return {};
}
template <typename Row, typename... Rows>
constexpr OptionTable<Row, Rows...> option_table(const Row& row, const Rows&... rows) {
    return {row, option_table(rows...)};
}

/// The rows of one table and then those of another.
template <typename... Rows>
constexpr OptionTable<Rows...> joined(const OptionTable<>&, const OptionTable<Rows...>& last) {
    return last;
}
template <typename Row, typename... Rows, typename... Last>
constexpr OptionTable<Row, Rows..., Last...> joined(const OptionTable<Row, Rows...>& first,
                                                    const OptionTable<Last...>& last) {
    return {first.row, joined(first.behind, last)};
}
template <typename First, typename Second, typename Third>
constexpr auto joined(const First& first, const Second& second, const Third& third) {
    return joined(joined(first, second), third);
}

/// What the table of a struct says about the option of a name.
template <typename Struct>
constexpr OptionText text_of(std::string_view name) {
    OptionText found;
    Struct::fields().each([&](const auto& row) {
        if (row.text.name == name) found = row.text;
    });
    if (found.name.empty()) throw "the struct has no option of this name";  // ends the compilation
    return found;
}

/// The rows of an alias's options that mean what the operator's of the same names do:
/// `same_options<Pooling, &GlobalPooling::mode>()`.
template <typename Operator, auto... fields>
constexpr auto same_options() {
    return option_table(option_row(fields, text_of<Operator>(field_name<fields>()))...);
}
/// The operator's struct with the values of those options.
template <typename Operator, typename Alias>
Operator same_values(const Alias& alias) {
    Operator meant;
    const auto copy = [&](const auto& from) {
        const auto copy_to = [&](const auto& to) {
            if constexpr (requires { &(meant.*to.field) == &(alias.*from.field); })
                if (from.text.name == to.text.name) meant.*to.field = alias.*from.field;
        };
        Operator::fields().each(copy_to);
    };
    Alias::fields().each(copy);
    return meant;
}
/// The row of such an option that has to be given.
template <typename Operator, auto field>
constexpr auto required() {
    OptionText text = text_of<Operator>(field_name<field>());
    text.is_required = true;
    return option_row(field, text);
}

}  // namespace dlprim::ops
