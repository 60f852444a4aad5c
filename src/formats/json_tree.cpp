// SPDX-License-Identifier: MIT
// JsonDocument: builds the tree from nlohmann's SAX events. nlohmann's parser has a stack of its
// own, so deep nesting cannot overflow the call stack before it is counted here.
#include "formats/json_tree.hpp"

#include "base/classic_numbers.hpp"
#include "base/file_kind.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

namespace dlprim {
namespace {

/// At most `limit` characters of untrusted text, without control characters, for use in a message.
std::string clipped(std::string_view text, std::size_t limit = 80) {
    std::string out(text.substr(0, limit));
    for (char& c : out)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    if (text.size() > limit) {
        while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xc0) == 0x80)
            out.pop_back();
        if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xc0) out.pop_back();
        out += "...";
    }
    return out;
}

/// An iterator over the text that counts how far the lexer has read, which SAX events do not tell.
class CountingIterator {
  public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    CountingIterator(const char* at, const char** progress) : at_(at), progress_(progress) {}
    reference operator*() const { return *at_; }
    CountingIterator& operator++() {
        *progress_ = ++at_;
        return *this;
    }
    CountingIterator operator++(int) {
        CountingIterator old = *this;
        ++*this;
        return old;
    }
    bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
    bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

  private:
    const char* at_;
    const char** progress_;
};

/// The receiver of nlohmann::json::sax_parse's events.
class TreeBuilder {
  public:
    using json = nlohmann::json;

    TreeBuilder(std::string_view text, const JsonLimits& limits) : text_(text), limits_(limits) {
        progress_ = text.data();
    }

    CountingIterator begin() { return {text_.data(), &progress_}; }
    CountingIterator end() { return {text_.data() + text_.size(), &progress_}; }

    JsonValue root;
    std::string error;  ///< set when an event returned false
    std::size_t error_position = 0;

    bool null() { return put(JsonValue{}); }
    bool boolean(bool value) { return put({value, 0}); }
    bool number_integer(std::int64_t value) { return put({value, 0}); }
    bool number_unsigned(std::uint64_t value) {
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            return stop(cat("the integer ", value, " does not fit 64 bits"));
        return put({static_cast<std::int64_t>(value), 0});
    }
    bool number_float(double value, const std::string& raw) {
        if (raw.find_first_of(".eE") == std::string::npos)
            return stop(cat("the integer ", clipped(raw, 40), " does not fit 64 bits"));
        return put({value, 0});
    }
    bool string(std::string& value) { return put({std::move(value), 0}); }
    bool binary(std::vector<std::uint8_t>&) { return stop("binary data is not JSON"); }
    bool start_array(std::size_t) { return open(JsonValue{JsonValue::Array{}, 0}); }
    bool start_object(std::size_t) { return open(JsonValue{JsonValue::Object{}, 0}); }
    bool end_array() {
        stack_.pop_back();
        return true;
    }
    bool key(std::string& name) {
        std::get<JsonValue::Object>(stack_.back()->data)
            .push_back({std::move(name), JsonValue{{}, position()}});
        return true;
    }
    bool end_object() {
        const auto& members = std::get<JsonValue::Object>(stack_.back()->data);
        std::vector<std::string_view> names;
        names.reserve(members.size());
        for (const auto& member : members) names.push_back(member.key);
        std::sort(names.begin(), names.end());
        const auto twice = std::adjacent_find(names.begin(), names.end());
        if (twice != names.end())
            return stop(cat("the key '", clipped(*twice), "' appears twice in one object"));
        stack_.pop_back();
        return true;
    }
    template <typename Exception>
    bool parse_error(std::size_t at, const std::string&, const Exception& exception) {
        // "[json.exception...] parse error at line 1, column 2: syntax error while ..."
        std::string_view what = exception.what();
        const std::size_t bracket = what.find("] ");
        if (bracket != std::string_view::npos) what.remove_prefix(bracket + 2);
        if (what.rfind("parse error", 0) == 0) {
            const std::size_t colon = what.find(": ");
            if (colon != std::string_view::npos) what.remove_prefix(colon + 2);
        }
        error = clipped(what, 200);
        error_position = at > 0 ? at - 1 : 0;
        return false;
    }

  private:
    std::size_t position() const {
        const auto read = static_cast<std::size_t>(progress_ - text_.data());
        return read > 0 ? read - 1 : 0;
    }
    bool stop(std::string what) {
        error = std::move(what);
        error_position = position();
        return false;
    }
    JsonValue* place(JsonValue value) {
        value.position = position();
        if (stack_.empty()) {
            root = std::move(value);
            return &root;
        }
        if (auto* items = std::get_if<JsonValue::Array>(&stack_.back()->data)) {
            items->push_back(std::move(value));
            return &items->back();
        }
        JsonValue& slot = std::get<JsonValue::Object>(stack_.back()->data).back().value;
        slot = std::move(value);
        return &slot;
    }
    bool put(JsonValue value) {
        place(std::move(value));
        return true;
    }
    bool open(JsonValue value) {
        if (static_cast<int>(stack_.size()) >= limits_.depth)
            return stop(cat("nested deeper than ", limits_.depth, " levels"));
        // Only the innermost open container grows, so pointers to the outer ones stay valid.
        stack_.push_back(place(std::move(value)));
        return true;
    }

    std::string_view text_;
    JsonLimits limits_;
    const char* progress_ = nullptr;
    std::vector<JsonValue*> stack_;
};

std::string member_path(const std::string& path, std::string_view key) {
    return path.empty() ? clipped(key) : cat(path, ".", clipped(key));
}

}  // namespace

std::string_view JsonValue::kind_name() const {
    constexpr std::string_view names[] = {"null",     "a boolean", "an integer", "a number",
                                          "a string", "a list",    "an object"};
    return names[data.index()];
}

JsonDocument::JsonDocument(std::string_view text, std::string source, const JsonLimits& limits)
    : source_(std::move(source)) {
    check_kind(text, source_, "JSON");
    if (is_path_like(text))
        dlprim::fail(ErrorKind::format, source_, ": JSON is expected, and '", text,
                     "' seems to be the path of a file");
    if (text.size() > limits.bytes)
        dlprim::fail(ErrorKind::format, source_, ": the text is ", text.size(),
                     " bytes long; at most ", limits.bytes, " are read");
    for (std::size_t at = text.find('\n'); at != std::string_view::npos;
         at = text.find('\n', at + 1))
        newlines_.push_back(at);
    TreeBuilder builder(text, limits);
    const ClassicNumbers classic;  // nlohmann's parser uses the locale's decimal point
    if (!nlohmann::json::sax_parse(builder.begin(), builder.end(), &builder)) {
        const std::size_t at = std::min(builder.error_position, text.size());
        const std::size_t row = line(at);
        const std::size_t column = at - (row > 1 ? newlines_[row - 2] + 1 : 0) + 1;
        if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
            builder.error = "empty; expected JSON";
        dlprim::fail(ErrorKind::format, source_, ":", row, ":", column, ": ", builder.error);
    }
    root_ = std::move(builder.root);
}

std::size_t JsonDocument::line(std::size_t position) const {
    const auto it = std::lower_bound(newlines_.begin(), newlines_.end(), position);
    return static_cast<std::size_t>(it - newlines_.begin()) + 1;
}

void JsonView::fail(const std::string& what) const {
    dlprim::fail(ErrorKind::format, document_->source(), ":", document_->line(value_->position),
                 ": ", path_.empty() ? "" : path_ + " ", what);
}

const std::string& JsonView::text() const {
    if (!is_text()) fail(cat("must be a string, not ", value_->kind_name()));
    return std::get<std::string>(value_->data);
}

const std::string& JsonView::name() const {
    constexpr std::size_t longest = 512;  // names appear in messages
    if (text().empty()) fail("must not be empty");
    if (text().size() > longest)
        fail(cat("is ", text().size(), " bytes long; a name has at most ", longest));
    return text();
}

std::int64_t JsonView::integer() const {
    if (const auto* integer = std::get_if<std::int64_t>(&value_->data)) return *integer;
    if (const auto* number = std::get_if<double>(&value_->data)) {
        if (*number == std::floor(*number) && std::abs(*number) < 9e18)
            return static_cast<std::int64_t>(*number);
        fail(cat("must be an integer, not ", *number));
    }
    fail(cat("must be an integer, not ", value_->kind_name()));
}

double JsonView::number() const {
    if (const auto* integer = std::get_if<std::int64_t>(&value_->data))
        return static_cast<double>(*integer);
    if (const auto* number = std::get_if<double>(&value_->data)) return *number;
    fail(cat("must be a number, not ", value_->kind_name()));
}

bool JsonView::boolean() const {
    if (const auto* boolean = std::get_if<bool>(&value_->data)) return *boolean;
    if (const auto* integer = std::get_if<std::int64_t>(&value_->data)) {
        if (*integer == 0 || *integer == 1) return *integer == 1;
        fail(cat("must be true, false, 0 or 1, not ", *integer));
    }
    fail(cat("must be true or false, not ", value_->kind_name()));
}

std::vector<JsonView> JsonView::array() const {
    if (!is_array()) fail(cat("must be a list, not ", value_->kind_name()));
    std::vector<JsonView> views;
    for (const JsonValue& item : std::get<JsonValue::Array>(value_->data))
        views.emplace_back(*document_, item, cat(path_, "[", views.size(), "]"));
    return views;
}

std::vector<std::pair<std::string, JsonView>> JsonView::object(
    std::initializer_list<std::string_view> keys) const {
    if (!is_object()) fail(cat("must be an object, not ", value_->kind_name()));
    std::vector<std::pair<std::string, JsonView>> views;
    for (const auto& [key, value] : std::get<JsonValue::Object>(value_->data)) {
        if (keys.size() > 0 && std::find(keys.begin(), keys.end(), key) == keys.end()) {
            const std::vector<std::string> known(keys.begin(), keys.end());
            const JsonView view(*document_, value, path_);
            const std::string hint = did_you_mean(clipped(key), known);
            view.fail(cat("has no key '", clipped(key), "'", hint.empty() ? "." : hint,
                          " Known keys: ", join(known, ", ")));
        }
        views.emplace_back(key, JsonView(*document_, value, member_path(path_, key)));
    }
    return views;
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
    if (!is_object()) fail(cat("must be an object, not ", value_->kind_name()));
    for (const auto& [name, value] : std::get<JsonValue::Object>(value_->data))
        if (name == key) return JsonView(*document_, value, member_path(path_, key));
    return std::nullopt;
}

std::optional<JsonView> JsonView::find_value(std::string_view key) const {
    std::optional<JsonView> member = find(key);
    if (member && std::holds_alternative<std::monostate>(member->value_->data)) member.reset();
    return member;
}

JsonView JsonView::at(std::string_view key) const {
    std::optional<JsonView> member = find(key);
    if (!member) fail(cat("lacks '", key, "'"));
    return *std::move(member);
}

}  // namespace dlprim
