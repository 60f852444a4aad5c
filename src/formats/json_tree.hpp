// SPDX-License-Identifier: MIT
// JSON text as a tree that remembers the position of each value, and a view that reads it. Errors
// name file, line and path: "net.json:12: operators[3].options.kernel must be ...".
//
// The text is not trusted: nesting is limited, and duplicate keys, numbers that fit no int64 or
// double, and invalid UTF-8 are errors. Parsing does not recurse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dlprim {

struct JsonMember;

struct JsonValue {
    using Array = std::vector<JsonValue>;
    using Object = std::vector<JsonMember>;  ///< in the order of the text
    std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> data;
    std::size_t position = 0;  ///< byte offset of the value's end (an array's or object's: start)

    /// "null", "a boolean", "an integer", "a number", "a string", "a list", "an object".
    std::string_view kind_name() const;
};

struct JsonMember {
    std::string key;
    JsonValue value;
};

/// Limits on what is read.
struct JsonLimits {
    int depth = 64;
    std::size_t bytes = std::size_t{16} << 20;
};

class JsonDocument;

/// A value of a document and its path. Cheap to copy; valid as long as the document lives.
/// Every reader throws Error(format) naming file, line and path when the value is of another kind.
class JsonView {
  public:
    JsonView(const JsonDocument& document, const JsonValue& value, std::string path)
        : document_(&document), value_(&value), path_(std::move(path)) {}

    const JsonValue& value() const { return *value_; }
    const std::string& path() const { return path_; }

    bool is_text() const { return std::holds_alternative<std::string>(value_->data); }
    bool is_array() const { return std::holds_alternative<JsonValue::Array>(value_->data); }
    bool is_object() const { return std::holds_alternative<JsonValue::Object>(value_->data); }
    bool is_integer() const { return std::holds_alternative<std::int64_t>(value_->data); }
    bool is_number() const { return is_integer() || std::holds_alternative<double>(value_->data); }

    const std::string& text() const;
    /// A string of 1 to 512 bytes.
    const std::string& name() const;
    /// An integer, or a number without a fraction.
    std::int64_t integer() const;
    double number() const;
    /// true, false, 0 or 1.
    bool boolean() const;
    std::vector<JsonView> array() const;
    /// Returns the members in order. If `keys` is not empty, any other key is an error, which names
    /// the nearest key.
    std::vector<std::pair<std::string, JsonView>> object(
        std::initializer_list<std::string_view> keys = {}) const;

    /// Returns a member of an object, or nothing if it is absent. Throws if this value is not an
    /// object.
    std::optional<JsonView> find(std::string_view key) const;
    /// The same, and nothing for null, too.
    std::optional<JsonView> find_value(std::string_view key) const;
    /// Returns a member that must be present.
    JsonView at(std::string_view key) const;

    /// Throws Error(format): "<file>:<line>: <path> <what>".
    [[noreturn]] void fail(const std::string& what) const;

  private:
    const JsonDocument* document_;
    const JsonValue* value_;
    std::string path_;
};

class JsonDocument {
  public:
    /// Throws Error(format): "<source>:<line>:<column>: ..." on a syntax error.
    JsonDocument(std::string_view text, std::string source, const JsonLimits& limits = {});
    JsonView root() const { return JsonView(*this, root_, ""); }
    const std::string& source() const { return source_; }
    /// The line of a byte offset, counted from 1.
    std::size_t line(std::size_t position) const;

  private:
    std::string source_;
    std::vector<std::size_t> newlines_;  ///< offsets of the ends of lines
    JsonValue root_;
};

}  // namespace dlprim
