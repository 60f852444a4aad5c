// SPDX-License-Identifier: MIT
// Attrs: an operator's options as parsed values, and Schema: which options an operator has.
//
// Attrs are what JSON options become and what a Problem's cache key is made of. A Schema, which
// base/schema.hpp makes of a struct, fills in defaults and rejects what the operator does not have,
// so that readers of attributes can trust them.
#pragma once

#include <dlprim/option_table.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dlprim {

using Ints = std::vector<std::int64_t>;
using Doubles = std::vector<double>;
using Strings = std::vector<std::string>;
using Attr = std::variant<bool, std::int64_t, double, std::string, Ints, Doubles, Strings>;

/// Nodes, problems and descriptions hand their attributes on all the time. So copies share the
/// items, and the first change of one of them makes items of its own.
class Attrs {
  public:
    using Item = std::pair<std::string, Attr>;

    Attrs() = default;
    Attrs(std::initializer_list<Item> items);

    bool has(std::string_view name) const { return find(name) != nullptr; }
    Attrs& set(std::string_view name, Attr value);
    void erase(std::string_view name);
    /// Sorted by name.
    const std::vector<Item>& items() const;
    /// The value of this name, or nullptr. It stays until the attributes change.
    const Attr* find(std::string_view name) const;
    /// The same; throws Error(invalid_argument) where there is none.
    const Attr& at(std::string_view name) const;

    // Readers throw Error(invalid_argument), which names the option, when it is absent or of
    // another kind. integer() accepts a double without a fraction, boolean() accepts 0 and 1,
    // ints() accepts a single integer, and number() accepts an integer.
    bool boolean(std::string_view name) const;
    std::int64_t integer(std::string_view name) const;
    double number(std::string_view name) const;
    const std::string& text(std::string_view name) const;
    Ints ints(std::string_view name) const;
    Doubles numbers(std::string_view name) const;
    Strings texts(std::string_view name) const;

    /// Canonical one-line form, the same for equal attributes: "bias=1 kernel=3,3".
    std::string str() const;
    bool operator==(const Attrs& other) const;

  private:
    std::vector<Item>& own_items();  ///< that no other attributes share

    std::shared_ptr<std::vector<Item>> items_;  ///< null: there are none
};

enum class OptionKind { boolean, integer, number, text, integers, numbers, texts };

struct OptionSpec {
    OptionKind kind;
    Attr value;  ///< the default
    ops::OptionText text;
};

/// The number of the choice that `value` is. Throws Error(invalid_argument), which offers the
/// nearest one, if it is none.
std::size_t choice_of(const ops::OptionText& option, std::string_view value);

/// The options of one operator type.
class Schema {
  public:
    Schema() = default;
    /// Of an operator with a public struct: what it takes, and its kind of work.
    Schema(std::string_view takes, std::string_view group) : takes_(takes), group_(group) {}
    /// Adds an option, whose kind is that of its default.
    void add(Attr value, const ops::OptionText& text);
    const std::vector<OptionSpec>& options() const { return options_; }
    std::string_view takes() const { return takes_; }
    std::string_view group() const { return group_; }
    /// Returns `given` with defaults filled in and every value converted to the declared kind. A
    /// boolean may be given as 0 or 1, a list of integers as one integer, and a number as an
    /// integer. An option given under its other name is returned under its own. fwd_algo,
    /// bwd_data_algo and bwd_filter_algo are dropped. Throws Error(invalid_argument), prefixed by
    /// `where`, if an option is unknown (the message offers the nearest name), is given under both
    /// of its names, has the wrong kind or a value that is not allowed, or is missing.
    Attrs complete(const Attrs& given, std::string_view where) const;

  private:
    std::vector<OptionSpec> options_;
    Attrs defaults_;
    std::string_view takes_, group_;
};

}  // namespace dlprim
