// SPDX-License-Identifier: MIT
// Values of the template language: what variables hold, and what Python's operators make of them.
// Texts, lists and maps do not change once they are made and are shared; a namespace alone changes.
//
// A template is hostile. Whoever makes or searches a value spends of the rendering's budget first
// (run.hpp). Lists and maps know how deep they are, namespaces and loops are elements of nothing,
// so that no value refers to itself and recursion over values ends.
#pragma once

#include "language/jinja/run.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dlprim::language::jinja {

struct List;
struct Map;
struct Namespace;
struct Loop;
struct Function;

struct None {};
struct Undefined {
    std::string name;  ///< of what is not there, for messages
};

class Value {
  public:
    using Data = std::variant<Undefined, None, bool, std::int64_t, double,
                              std::shared_ptr<const std::string>, std::shared_ptr<const List>,
                              std::shared_ptr<const Map>, std::shared_ptr<Namespace>,
                              std::shared_ptr<const Loop>, std::shared_ptr<const Function>>;

    Value() = default;
    Value(None none) : data_(none) {}
    Value(bool value) : data_(value) {}
    Value(std::int64_t value) : data_(value) {}
    Value(double value) : data_(value) {}
    Value(std::string text) : data_(std::make_shared<const std::string>(std::move(text))) {}
    Value(const char* text) : Value(std::string(text)) {}
    template <typename T>
    Value(std::shared_ptr<T> shared) : data_(std::move(shared)) {}
    static Value undefined(std::string name) {
        Value value;
        value.data_ = Undefined{std::move(name)};
        return value;
    }

    const Data& data() const { return data_; }
    bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
    bool is_none() const { return std::holds_alternative<None>(data_); }
    bool is_bool() const { return std::holds_alternative<bool>(data_); }
    /// Integers, booleans among them.
    bool is_integer() const { return is_bool() || std::holds_alternative<std::int64_t>(data_); }
    bool is_number() const { return is_integer() || std::holds_alternative<double>(data_); }
    bool is_text() const { return get<std::shared_ptr<const std::string>>() != nullptr; }
    const std::string& text() const { return **get<std::shared_ptr<const std::string>>(); }
    const List* list() const { return pointee<const List>(); }
    const Map* map() const { return pointee<const Map>(); }
    const Loop* loop() const { return pointee<const Loop>(); }
    const Function* function() const { return pointee<const Function>(); }
    Namespace* names() const { return pointee<Namespace>(); }
    std::int64_t integer() const {
        return is_bool() ? std::int64_t{std::get<bool>(data_)} : std::get<std::int64_t>(data_);
    }
    double number() const {
        return is_integer() ? static_cast<double>(integer()) : std::get<double>(data_);
    }

  private:
    template <typename T>
    const T* get() const {
        return std::get_if<T>(&data_);
    }
    template <typename T>
    T* pointee() const {
        const auto* const found = get<std::shared_ptr<T>>();
        return found == nullptr ? nullptr : found->get();
    }

    Data data_;
};

struct List {
    std::vector<Value> items;
    bool tuple = false;
    int depth = 1;
};

struct Map {
    std::vector<std::pair<std::string, Value>> members;  ///< in the order in which they were given
    int depth = 1;

    const Value* find(std::string_view key) const;
};

struct Namespace {
    std::map<std::string, Value, std::less<>> members;
};

/// The variable `loop` of a for statement, in one of its rounds.
struct Loop {
    std::shared_ptr<const std::vector<Value>> items;
    std::size_t index = 0;
};

struct Macro;

/// A macro, a function that every template has, or a method of a value.
struct Function {
    const Macro* macro = nullptr;
    std::string name;
    Value self;
};

/// These throw for what is too deep, and for elements that cannot be any.
Value make_list(Run& run, std::vector<Value> items, bool tuple = false);
Value make_map(Run& run, std::vector<std::pair<std::string, Value>> members);
/// Spends what the text takes.
Value make_text(Run& run, std::string text);

bool truth(const Value& value);
/// What messages call a value: "a text", "a list", "'name', which is undefined".
std::string kind_of(const Value& value);
bool equal(Run& run, const Value& a, const Value& b);
/// Whether a < b; texts by their bytes, lists by their first elements that differ.
bool less(Run& run, const Value& a, const Value& b);
/// `container` as Python's operator `in` searches it.
bool contains(Run& run, const Value& container, const Value& item);
/// Elements as a for statement meets them: of a list, keys of a map, characters of a text.
std::vector<Value> elements(Run& run, const Value& value);
/// As Python's str() has it; an undefined value is empty.
std::string to_text(Run& run, const Value& value);
/// As Python's json.dumps() has it. `indent` below 0: all in one line.
std::string to_json(Run& run, const Value& value, std::int64_t indent, bool sorted);

/// Position of `part` in `text` from `from` on, else npos; takes time as the lengths together.
std::size_t find_text(Run& run, std::string_view text, std::string_view part, std::size_t from = 0);
/// How many characters a text in UTF-8 has.
std::size_t characters(Run& run, std::string_view text);
/// Where a character begins: the byte behind the first `count` ones.
std::size_t byte_of_character(std::string_view text, std::size_t count);

}  // namespace dlprim::language::jinja
