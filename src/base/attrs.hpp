// SPDX-License-Identifier: MIT
// Attrs: an operator's options as parsed values, and Schema: which options an operator has.
//
// Attrs are what JSON options become and what a Problem's cache key is made of; an operator reads
// them into a typed struct of its own (src/ops/<op>/options.hpp). A Schema fills in defaults and
// rejects names and kinds that the operator does not have, so that typed readers can trust them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dlprim {

using Ints = std::vector<std::int64_t>;
using Doubles = std::vector<double>;
using Strings = std::vector<std::string>;
using Attr = std::variant<bool, std::int64_t, double, std::string, Ints, Doubles, Strings>;

class Attrs {
  public:
    Attrs() = default;
    Attrs(std::initializer_list<std::pair<const std::string, Attr>> items) : items_(items) {}

    bool has(std::string_view name) const { return items_.find(name) != items_.end(); }
    Attrs& set(std::string_view name, Attr value);
    void erase(std::string_view name);
    const std::map<std::string, Attr, std::less<>>& items() const { return items_; }

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
    bool operator==(const Attrs&) const = default;

  private:
    const Attr& at(std::string_view name) const;
    std::map<std::string, Attr, std::less<>> items_;
};

enum class OptionKind { boolean, integer, number, text, integers, numbers, texts };

struct OptionSpec {
    std::string name;
    OptionKind kind;
    Attr value;             ///< the default
    std::string help;       ///< one line for docs/json.md
    bool required = false;  ///< there is no default, and its absence is an error
    std::string also = {};  ///< another accepted name of the option (PyTorch's), or empty
};

/// The options of one operator type.
class Schema {
  public:
    Schema() = default;
    Schema(std::initializer_list<OptionSpec> options) : options_(options) {}
    const std::vector<OptionSpec>& options() const { return options_; }
    /// Returns `given` with defaults filled in and every value converted to the declared kind. A
    /// boolean may be given as 0 or 1, a list of integers as one integer, and a number as an
    /// integer. An option given under its other name is returned under its own. fwd_algo,
    /// bwd_data_algo and bwd_filter_algo are dropped. Throws Error(invalid_argument), prefixed by
    /// `where`, if an option is unknown (the message offers the nearest name), is given under both
    /// of its names, has the wrong kind, or is missing.
    Attrs complete(const Attrs& given, std::string_view where) const;

  private:
    std::vector<OptionSpec> options_;
};

}  // namespace dlprim
