// SPDX-License-Identifier: MIT
// Values of the template language: making, comparing and writing them as Python does.
#include "language/jinja/value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

namespace dlprim::language::jinja {

namespace {

constexpr int deepest_value = 64;
constexpr std::uint64_t element_units = 48;  ///< what a list takes for an element

int depth_of(Run& run, const Value& value) {
    run.require(value.names() == nullptr && value.loop() == nullptr, kind_of(value),
                " cannot be an element of a list or of a map");
    if (const List* list = value.list()) return list->depth;
    if (const Map* map = value.map()) return map->depth;
    return 0;
}

bool equal_texts(Run& run, const std::string& a, const std::string& b) {
    if (a.size() != b.size()) return false;
    run.spend(a.size());
    return a == b;
}

/// Digits of a number and a decimal exponent, as Python's repr() writes them.
std::string float_text(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    std::array<char, 64> buffer{};
    char* const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                    std::chars_format::scientific)
                          .ptr;
    std::string scientific(buffer.data(), end);
    const std::size_t e = scientific.find('e');
    const int exponent = leading_number<int>(
        std::string_view(scientific).substr(e + (scientific[e + 1] == '+' ? 2 : 1)), 0);
    if (exponent < -4 || exponent >= 16) return scientific;
    char* const fixed_end =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed)
            .ptr;
    std::string text(buffer.data(), fixed_end);
    if (text.find('.') == std::string::npos) text += ".0";
    return text;
}

constexpr std::string_view hex_digits = "0123456789abcdef";

/// A text as Python's repr() quotes it, but for characters beyond ASCII, which stay.
std::string quoted(Run& run, const std::string& text) {
    run.spend(text.size());
    const bool has_single = text.find('\'') != std::string::npos;
    const char quote = has_single && text.find('"') == std::string::npos ? '"' : '\'';
    std::string out(1, quote);
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == quote || c == '\\')
            (out += '\\') += c;
        else if (c == '\n' || c == '\r' || c == '\t')
            out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
        else if (byte < 32 || byte == 127)
            ((out += "\\x") += hex_digits[byte >> 4]) += hex_digits[byte & 15];
        else
            out += c;
    }
    return out += quote;
}

std::string json_text(Run& run, const std::string& text) {
    run.spend(text.size());
    constexpr std::string_view plain = "\"\\\n\r\t\f\b", letters = "\"\\nrtfb";
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (const std::size_t at = plain.find(c); at != std::string_view::npos)
            (out += '\\') += letters[at];
        else if (byte < 32)
            ((out += "\\u00") += hex_digits[byte >> 4]) += hex_digits[byte & 15];
        else
            out += c;
    }
    return out += '"';
}

std::string repr(Run& run, const Value& value);

std::string repr_of_list(Run& run, const List& list) {
    std::string out(1, list.tuple ? '(' : '[');
    for (std::size_t i = 0; i < list.items.size(); ++i)
        (out += i > 0 ? ", " : "") += repr(run, list.items[i]);
    if (list.tuple && list.items.size() == 1) out += ',';
    run.spend(out.size());
    return out += list.tuple ? ')' : ']';
}

std::string repr_of_map(Run& run, const Map& map) {
    std::string out = "{";
    for (const auto& [key, value] : map.members) {
        if (out.size() > 1) out += ", ";
        (out += quoted(run, key)) += ": ";
        out += repr(run, value);
    }
    run.spend(out.size());
    return out += '}';
}

std::string repr(Run& run, const Value& value) {
    return value.is_text() ? quoted(run, value.text()) : to_text(run, value);
}

class JsonWriter {
  public:
    JsonWriter(Run& run, std::int64_t indent, bool sorted)
        : run_(run), indent_(indent), sorted_(sorted) {}

    void write(const Value& value) {
        run_.spend(16);
        if (value.is_none())
            out_ += "null";
        else if (value.is_bool())
            out_ += std::get<bool>(value.data()) ? "true" : "false";
        else if (value.is_text())
            out_ += json_text(run_, value.text());
        else if (value.is_number())
            out_ += number(value);
        else if (const List* list = value.list())
            write_all('[', ']', list->items, [&](const Value& item) { write(item); });
        else if (const Map* map = value.map())
            write_map(*map);
        else
            run_.fail("tojson has no text for ", kind_of(value));
    }
    std::string text() && { return std::move(out_); }

  private:
    std::string number(const Value& value) {
        const std::string text = to_text(run_, value);
        if (text == "nan") return "NaN";
        if (text == "inf") return "Infinity";
        return text == "-inf" ? "-Infinity" : text;
    }
    void new_line() {
        if (indent_ < 0) return;
        const auto count = static_cast<std::size_t>(indent_) * level_;
        run_.spend(count + 1);
        (out_ += '\n').append(count, ' ');
    }
    template <typename Items, typename Write>
    void write_all(char open, char close, const Items& items, const Write& write_one) {
        out_ += open;
        ++level_;
        bool first = true;
        for (const auto& item : items) {
            if (!first) out_ += indent_ < 0 ? ", " : ",";
            first = false;
            new_line();
            write_one(item);
        }
        --level_;
        if (!first) new_line();
        out_ += close;
    }
    void write_map(const Map& map) {
        auto members = map.members;
        if (sorted_)
            std::sort(members.begin(), members.end(),
                      [](const auto& a, const auto& b) { return a.first < b.first; });
        write_all('{', '}', members, [&](const auto& member) {
            (out_ += json_text(run_, member.first)) += ": ";
            write(member.second);
        });
    }

    Run& run_;
    std::int64_t indent_;
    bool sorted_;
    std::size_t level_ = 0;
    std::string out_;
};

}  // namespace

const Value* Map::find(std::string_view key) const {
    for (const auto& [name, value] : members)
        if (name == key) return &value;
    return nullptr;
}

Value make_list(Run& run, std::vector<Value> items, bool tuple) {
    run.spend(element_units * (items.size() + 1));
    List list{std::move(items), tuple, 1};
    for (const Value& item : list.items) list.depth = std::max(list.depth, depth_of(run, item) + 1);
    run.require(list.depth <= deepest_value, "a list is nested more than ", deepest_value, " deep");
    return std::make_shared<const List>(std::move(list));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): its members are moved to the map
Value make_map(Run& run, std::vector<std::pair<std::string, Value>> members) {
    Map map;
    for (auto& [key, value] : members) {
        run.spend(element_units + key.size() + map.members.size());
        map.depth = std::max(map.depth, depth_of(run, value) + 1);
        const auto same =
            std::find_if(map.members.begin(), map.members.end(),
                         [&key = key](const auto& member) { return member.first == key; });
        if (same == map.members.end())
            map.members.emplace_back(std::move(key), std::move(value));
        else
            same->second = std::move(value);
    }
    run.require(map.depth <= deepest_value, "a map is nested more than ", deepest_value, " deep");
    return std::make_shared<const Map>(std::move(map));
}

Value make_text(Run& run, std::string text) {
    run.spend(text.size());
    return text;
}

bool truth(const Value& value) {
    if (value.is_undefined() || value.is_none()) return false;
    if (value.is_number()) return value.number() != 0;
    if (value.is_text()) return !value.text().empty();
    if (const List* list = value.list()) return !list->items.empty();
    if (const Map* map = value.map()) return !map->members.empty();
    return true;
}

std::string kind_of(const Value& value) {
    if (const auto* undefined = std::get_if<Undefined>(&value.data()))
        return "'" + undefined->name + "', which is undefined";
    if (value.is_none()) return "none";
    if (value.is_bool()) return "a boolean";
    if (value.is_integer()) return "an integer";
    if (value.is_number()) return "a number";
    if (value.is_text()) return "a text";
    if (value.list() != nullptr) return "a list";
    if (value.map() != nullptr) return "a map";
    if (value.names() != nullptr) return "a namespace";
    return value.loop() != nullptr ? "the loop" : "a function";
}

bool equal(Run& run, const Value& a, const Value& b) {
    run.spend(4);
    if (a.is_integer() && b.is_integer()) return a.integer() == b.integer();
    if (a.is_number() && b.is_number()) return a.number() == b.number();
    if (a.data().index() != b.data().index()) return false;
    if (a.is_text()) return equal_texts(run, a.text(), b.text());
    if (const List* list = a.list()) {
        const List& other = *b.list();
        return list->tuple == other.tuple && list->items.size() == other.items.size() &&
               std::equal(list->items.begin(), list->items.end(), other.items.begin(),
                          [&](const Value& x, const Value& y) { return equal(run, x, y); });
    }
    if (const Map* map = a.map()) {
        run.spend(map->members.size() * map->members.size());
        const Map& other = *b.map();
        return map->members.size() == other.members.size() &&
               std::all_of(map->members.begin(), map->members.end(), [&](const auto& member) {
                   const Value* const found = other.find(member.first);
                   return found != nullptr && equal(run, member.second, *found);
               });
    }
    if (a.names() != nullptr) return a.names() == b.names();
    if (a.loop() != nullptr) return a.loop() == b.loop();
    if (a.function() != nullptr) return a.function() == b.function();
    return true;  // undefined, none
}

bool less(Run& run, const Value& a, const Value& b) {
    run.spend(4);
    if (a.is_integer() && b.is_integer()) return a.integer() < b.integer();
    if (a.is_number() && b.is_number()) return a.number() < b.number();
    if (a.is_text() && b.is_text()) {
        run.spend(std::min(a.text().size(), b.text().size()));
        return a.text() < b.text();
    }
    if (a.list() != nullptr && b.list() != nullptr) {
        const std::vector<Value>&left = a.list()->items, &right = b.list()->items;
        for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i)
            if (!equal(run, left[i], right[i])) return less(run, left[i], right[i]);
        return left.size() < right.size();
    }
    run.fail(kind_of(a), " and ", kind_of(b), " have no order");
}

bool contains(Run& run, const Value& container, const Value& item) {
    if (container.is_text()) {
        run.require(item.is_text(), "a text can only contain a text, not ", kind_of(item));
        return find_text(run, container.text(), item.text()) != std::string::npos;
    }
    if (const Map* map = container.map()) {
        run.spend(map->members.size());
        return item.is_text() && map->find(item.text()) != nullptr;
    }
    if (container.is_undefined()) return false;
    run.require(container.list() != nullptr, "'in' searches no ", kind_of(container));
    const std::vector<Value>& items = container.list()->items;
    return std::any_of(items.begin(), items.end(),
                       [&](const Value& one) { return equal(run, one, item); });
}

std::vector<Value> elements(Run& run, const Value& value) {
    std::vector<Value> all;
    if (value.is_undefined()) return all;
    if (const List* list = value.list()) {
        run.spend(element_units * list->items.size());
        return list->items;
    }
    if (const Map* map = value.map()) {
        for (const auto& [key, of_key] : map->members) {
            run.spend(element_units + key.size());
            all.emplace_back(key);
        }
        return all;
    }
    run.require(value.is_text(), kind_of(value), " has no elements");
    const std::string& text = value.text();
    run.spend(text.size() * 2 * element_units);  // before memory is taken
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = byte_of_character(std::string_view(text).substr(at), 1);
        all.emplace_back(text.substr(at, length));
        at += length;
    }
    return all;
}

std::string to_text(Run& run, const Value& value) {
    if (value.is_undefined()) return "";
    if (value.is_none()) return "None";
    if (value.is_bool()) return std::get<bool>(value.data()) ? "True" : "False";
    if (value.is_integer()) return cat(value.integer());
    if (value.is_number()) return float_text(value.number());
    if (value.is_text()) {
        run.spend(value.text().size());
        return value.text();
    }
    if (const List* list = value.list()) return repr_of_list(run, *list);
    if (const Map* map = value.map()) return repr_of_map(run, *map);
    run.fail(kind_of(value), " has no text");
}

std::string to_json(Run& run, const Value& value, std::int64_t indent, bool sorted) {
    run.require(indent <= 64, "tojson indents by 64 blanks at most, not by ", indent);
    JsonWriter writer(run, indent, sorted);
    writer.write(value);
    return std::move(writer).text();
}

std::size_t find_text(Run& run, std::string_view text, std::string_view part, std::size_t from) {
    if (from > text.size()) return std::string::npos;
    run.spend(text.size() - from + part.size());
    if (part.empty()) return from;
    // Takes linear time whatever the texts are, which std::string::find does not.
    const void* const found =
        memmem(text.data() + from, text.size() - from, part.data(), part.size());
    return found == nullptr
               ? std::string::npos
               : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::size_t characters(Run& run, std::string_view text) {
    run.spend(text.size());
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    }));
}

std::size_t byte_of_character(std::string_view text, std::size_t count) {
    std::size_t at = 0;
    for (; count > 0 && at < text.size(); --count) do
            ++at;
        while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
    return at;
}

}  // namespace dlprim::language::jinja
