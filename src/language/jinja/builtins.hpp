// SPDX-License-Identifier: MIT
// What templates find there: filters, tests, functions, and the methods of texts, lists and maps.
// They are Jinja's and Python's as far as chat templates use them. Case is ASCII's alone.
#pragma once

#include "language/jinja/value.hpp"

#include <ctime>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim::language::jinja {

struct Arguments {
    std::vector<Value> values;
    std::vector<std::pair<std::string, Value>> named;
};

/// Arguments by the names of parameters, of which `required` must be given.
class Given {
  public:
    Given(Run& run, std::string_view what, const Arguments& arguments,
          std::initializer_list<std::string_view> names, std::size_t required = 0);

    /// Null if it is not given.
    const Value* find(std::size_t i) const { return values_[i]; }
    const Value& at(std::size_t i) const { return *values_[i]; }
    /// These throw for a value of another kind.
    const std::string& text(std::size_t i) const;
    std::int64_t integer(std::size_t i, std::int64_t otherwise) const;
    bool truth(std::size_t i, bool otherwise) const;

  private:
    Run& run_;
    std::string what_;
    std::vector<const Value*> values_;
};

Value apply_filter(Run& run, const std::string& name, const Value& input,
                   const Arguments& arguments);
bool apply_test(Run& run, const std::string& name, const Value& value, const Arguments& arguments);
bool has_method(const Value& self, std::string_view name);
Value call_method(Run& run, const Value& self, const std::string& name, const Arguments& arguments);
bool is_function(std::string_view name);
Value call_function(Run& run, const std::string& name, const Arguments& arguments,
                    const std::tm& now);

/// value.name and value[key], undefined where there is none.
Value attribute_of(Run& run, const Value& value, const std::string& name);
Value item_of(Run& run, const Value& value, const Value& key);

/// Without blanks, or characters of `set`, at the ends that `left` and `right` say.
std::string_view stripped(Run& run, std::string_view text, const std::string* set, bool left,
                          bool right);
std::string replaced(Run& run, std::string_view text, std::string_view from, std::string_view to,
                     std::int64_t most);
std::string in_case(Run& run, std::string text, bool upper);
/// The first letter large, the others small; `each`: of every word.
std::string capitalized(Run& run, std::string text, bool each);

}  // namespace dlprim::language::jinja
