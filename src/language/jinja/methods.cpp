// SPDX-License-Identifier: MIT
// Attributes, items and methods of values, and functions.
#include "language/jinja/builtins.hpp"

#include <algorithm>
#include <array>
#include <functional>

namespace dlprim::language::jinja {

namespace {

using Method = Value (*)(Run&, const Value& self, const Arguments&);

struct NamedMethod {
    std::string_view name;
    Method call;
};

/// The character that begins at `at`; blanks are those that Python strips.
bool is_blank(std::string_view character) {
    if (character.size() == 1)
        return ascii::is_space(character[0]) || (character[0] >= 28 && character[0] <= 31);
    static constexpr std::string_view blanks[] = {"\u0085", "\u00a0", "\u1680", "\u2000", "\u2001",
                                                  "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
                                                  "\u2007", "\u2008", "\u2009", "\u200a", "\u2028",
                                                  "\u2029", "\u202f", "\u205f", "\u3000"};
    return std::find(std::begin(blanks), std::end(blanks), character) != std::end(blanks);
}

std::string_view last_character(std::string_view text) {
    std::size_t at = text.size() - 1;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    return text.substr(at);
}

template <bool left, bool right>
Value strip(Run& run, const Value& self, const Arguments& arguments) {
    const Given given(run, "strip", arguments, {"chars"});
    const bool has = given.find(0) != nullptr && !given.at(0).is_none();
    return make_text(
        run, std::string(stripped(run, self.text(), has ? &given.text(0) : nullptr, left, right)));
}

/// Pieces between blanks, at most `most` cuts.
std::vector<Value> words(Run& run, std::string_view text, std::int64_t most) {
    std::vector<Value> pieces;
    for (;;) {
        text = stripped(run, text, nullptr, true, false);
        if (text.empty()) return pieces;
        if (std::ssize(pieces) == most) break;
        std::size_t end = 0;
        while (end < text.size()) {
            const std::size_t length = byte_of_character(text.substr(end), 1);
            if (is_blank(text.substr(end, length))) break;
            end += length;
        }
        pieces.push_back(make_text(run, std::string(text.substr(0, end))));
        text.remove_prefix(end);
    }
    pieces.push_back(make_text(run, std::string(stripped(run, text, nullptr, false, true))));
    return pieces;
}

Value split_text(Run& run, const Value& self, const Arguments& arguments) {
    const Given given(run, "split", arguments, {"sep", "maxsplit"});
    std::int64_t most = given.integer(1, -1);
    if (most < 0) most = std::int64_t{1} << 40;
    const std::string& text = self.text();
    if (given.find(0) == nullptr || given.at(0).is_none())
        return make_list(run, words(run, text, most));
    const std::string& separator = given.text(0);
    run.require(!separator.empty(), "split() was given an empty separator");
    std::vector<Value> pieces;
    std::size_t from = 0;
    while (std::ssize(pieces) < most) {
        // Only what is behind counts, or many pieces would be charged for the whole text.
        const std::size_t found = text.find(separator, from);
        if (found == std::string::npos) break;
        run.spend(found - from + separator.size());
        pieces.push_back(make_text(run, text.substr(from, found - from)));
        from = found + separator.size();
    }
    pieces.push_back(make_text(run, text.substr(from)));
    return make_list(run, std::move(pieces));
}

template <bool at_end>
Value has_affix(Run& run, const Value& self, const Arguments& arguments) {
    const Given given(run, at_end ? "endswith" : "startswith", arguments, {"affix"}, 1);
    const auto fits = [&](const Value& affix) {
        run.require(affix.is_text(), "startswith() and endswith() take a text, not ",
                    kind_of(affix));
        run.spend(affix.text().size());
        return at_end ? self.text().ends_with(affix.text()) : self.text().starts_with(affix.text());
    };
    if (const List* list = given.at(0).list())
        return std::any_of(list->items.begin(), list->items.end(), fits);
    return fits(given.at(0));
}

template <bool at_end>
Value without_affix(Run& run, const Value& self, const Arguments& arguments) {
    const Given given(run, at_end ? "removesuffix" : "removeprefix", arguments, {"affix"}, 1);
    std::string text = self.text();
    const std::string& affix = given.text(0);
    if (at_end ? text.ends_with(affix) : text.starts_with(affix))
        text.erase(at_end ? text.size() - affix.size() : 0, affix.size());
    return make_text(run, std::move(text));
}

Value replace_text(Run& run, const Value& self, const Arguments& arguments) {
    const Given given(run, "replace", arguments, {"old", "new", "count"}, 2);
    return replaced(run, self.text(), given.text(0), given.text(1), given.integer(2, -1));
}

Value find_part(Run& run, const Value& self, const Arguments& arguments) {
    const Given given(run, "find", arguments, {"sub"}, 1);
    const std::size_t found = find_text(run, self.text(), given.text(0));
    if (found == std::string::npos) return std::int64_t{-1};
    return static_cast<std::int64_t>(
        characters(run, std::string_view(self.text()).substr(0, found)));
}

Value count_parts(Run& run, const Value& self, const Arguments& arguments) {
    const Given given(run, "count", arguments, {"sub"}, 1);
    const std::string& part = given.text(0);
    run.require(!part.empty(), "count() was given an empty text");
    std::int64_t count = 0;
    for (std::size_t at = 0;; ++count) {
        const std::size_t found = self.text().find(part, at);
        if (found == std::string::npos) return count;
        run.spend(found - at + part.size());
        at = found + part.size();
    }
}

Value join_texts(Run& run, const Value& self, const Arguments& arguments) {
    const Given given(run, "join", arguments, {"items"}, 1);
    Arguments separator{{self}, {}};
    return apply_filter(run, "join", given.at(0), separator);
}

Value split_lines(Run& run, const Value& self, const Arguments& arguments) {
    const Given given(run, "splitlines", arguments, {"keepends"});
    const bool keep = given.truth(0, false);
    std::vector<Value> lines;
    const std::string& text = self.text();
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find_first_of("\n\r", at), text.size());
        const std::size_t sign = end == text.size() ? 0 : text.compare(end, 2, "\r\n") == 0 ? 2 : 1;
        lines.push_back(make_text(run, text.substr(at, end - at + (keep ? sign : 0))));
        at = end + sign;
    }
    return make_list(run, std::move(lines));
}

template <bool (*belongs)(char)>
Value consists_of(Run& run, const Value& self, const Arguments& arguments) {
    const Given given(run, "isdigit", arguments, {});
    run.spend(self.text().size());
    return !self.text().empty() && std::all_of(self.text().begin(), self.text().end(), belongs);
}

Value upper_text(Run& run, const Value& self, const Arguments&) {
    return in_case(run, self.text(), true);
}
Value lower_text(Run& run, const Value& self, const Arguments&) {
    return in_case(run, self.text(), false);
}
Value capital_text(Run& run, const Value& self, const Arguments&) {
    return capitalized(run, self.text(), false);
}
Value title_text(Run& run, const Value& self, const Arguments&) {
    return capitalized(run, self.text(), true);
}

constexpr NamedMethod text_methods[] = {
    {"strip", strip<true, true>},
    {"lstrip", strip<true, false>},
    {"rstrip", strip<false, true>},
    {"split", split_text},
    {"startswith", has_affix<false>},
    {"endswith", has_affix<true>},
    {"removeprefix", without_affix<false>},
    {"removesuffix", without_affix<true>},
    {"replace", replace_text},
    {"find", find_part},
    {"count", count_parts},
    {"join", join_texts},
    {"splitlines", split_lines},
    {"isdigit", consists_of<ascii::is_digit>},
    {"isalpha", consists_of<ascii::is_letter>},
    {"isspace", consists_of<ascii::is_space>},
    {"upper", upper_text},
    {"lower", lower_text},
    {"capitalize", capital_text},
    {"title", title_text},
};

Value map_items(Run& run, const Value& self, const Arguments& arguments) {
    const Given given(run, "items", arguments, {});
    return apply_filter(run, "items", self, {});
}

Value map_keys(Run& run, const Value& self, const Arguments&) {
    return make_list(run, elements(run, self));
}

Value map_values(Run& run, const Value& self, const Arguments&) {
    std::vector<Value> values;
    for (const auto& member : self.map()->members) values.push_back(member.second);
    return make_list(run, std::move(values));
}

Value map_get(Run& run, const Value& self, const Arguments& arguments) {
    const Given given(run, "get", arguments, {"key", "default"}, 1);
    run.spend(self.map()->members.size());
    const Value* const found = given.at(0).is_text() ? self.map()->find(given.text(0)) : nullptr;
    if (found != nullptr) return *found;
    return given.find(1) != nullptr ? given.at(1) : Value(None{});
}

constexpr NamedMethod map_methods[] = {
    {"items", map_items}, {"keys", map_keys}, {"values", map_values}, {"get", map_get}};

Value list_index(Run& run, const Value& self, const Arguments& arguments) {
    const Given given(run, "index", arguments, {"value"}, 1);
    const std::vector<Value>& items = self.list()->items;
    for (std::size_t i = 0; i < items.size(); ++i)
        if (equal(run, items[i], given.at(0))) return static_cast<std::int64_t>(i);
    run.fail("index() finds no such element");
}

Value list_count(Run& run, const Value& self, const Arguments& arguments) {
    const Given given(run, "count", arguments, {"value"}, 1);
    std::int64_t count = 0;
    for (const Value& item : self.list()->items) count += equal(run, item, given.at(0)) ? 1 : 0;
    return count;
}

constexpr NamedMethod list_methods[] = {{"index", list_index}, {"count", list_count}};

Method find_method(const Value& self, std::string_view name) {
    const auto find = [&](const auto& methods) -> Method {
        for (const NamedMethod& method : methods)
            if (method.name == name) return method.call;
        return nullptr;
    };
    if (self.is_text()) return find(text_methods);
    if (self.map() != nullptr) return find(map_methods);
    return self.list() != nullptr ? find(list_methods) : nullptr;
}

Value loop_attribute(Run& run, const Loop& loop, const std::string& name) {
    const std::size_t count = loop.items->size(), i = loop.index;
    const auto number = [](std::size_t value) { return Value(static_cast<std::int64_t>(value)); };
    if (name == "index") return number(i + 1);
    if (name == "index0") return number(i);
    if (name == "revindex") return number(count - i);
    if (name == "revindex0") return number(count - i - 1);
    if (name == "first") return i == 0;
    if (name == "last") return i + 1 == count;
    if (name == "length") return number(count);
    if (name == "previtem") return i > 0 ? (*loop.items)[i - 1] : Value::undefined("loop.previtem");
    if (name == "nextitem")
        return i + 1 < count ? (*loop.items)[i + 1] : Value::undefined("loop.nextitem");
    run.fail("'loop.", name, "' is not supported");
}

/// Names of days and months do not depend on a locale.
std::string time_text(Run& run, const std::string& format, const std::tm& now) {
    static constexpr std::string_view days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                "Thursday", "Friday", "Saturday"};
    static constexpr std::string_view months[] = {"January",   "February", "March",    "April",
                                                  "May",       "June",     "July",     "August",
                                                  "September", "October",  "November", "December"};
    const auto padded = [](int value, std::size_t digits) {
        const std::string text = cat(value);
        return std::string(digits - std::min(digits, text.size()), '0') + text;
    };
    const auto day = days[static_cast<std::size_t>(now.tm_wday) % 7];
    const auto month = months[static_cast<std::size_t>(now.tm_mon) % 12];
    const int hour = now.tm_hour % 12 == 0 ? 12 : now.tm_hour % 12;
    std::string out;
    for (std::size_t i = 0; i < format.size(); ++i) {
        if (format[i] != '%' || i + 1 == format.size()) {
            out += format[i];
            continue;
        }
        const char letter = format[++i];
        switch (letter) {
            case 'Y':
                out += padded(now.tm_year + 1900, 4);
                break;
            case 'y':
                out += padded(now.tm_year % 100, 2);
                break;
            case 'm':
                out += padded(now.tm_mon + 1, 2);
                break;
            case 'd':
                out += padded(now.tm_mday, 2);
                break;
            case 'H':
                out += padded(now.tm_hour, 2);
                break;
            case 'I':
                out += padded(hour, 2);
                break;
            case 'M':
                out += padded(now.tm_min, 2);
                break;
            case 'S':
                out += padded(now.tm_sec, 2);
                break;
            case 'j':
                out += padded(now.tm_yday + 1, 3);
                break;
            case 'p':
                out += now.tm_hour < 12 ? "AM" : "PM";
                break;
            case 'B':
                out += month;
                break;
            case 'b':
                out += month.substr(0, 3);
                break;
            case 'A':
                out += day;
                break;
            case 'a':
                out += day.substr(0, 3);
                break;
            case '%':
                out += '%';
                break;
            default:
                run.fail("strftime_now() does not know %", letter);
        }
    }
    return out;
}

Value range_of(Run& run, const Arguments& arguments) {
    const Given given(run, "range", arguments, {"start", "stop", "step"}, 1);
    const bool one = given.find(1) == nullptr;
    const std::int64_t start = one ? 0 : given.integer(0, 0);
    const std::int64_t stop = given.integer(one ? 0 : 1, 0), step = given.integer(2, 1);
    constexpr std::int64_t most = 100000;
    run.require(step != 0, "range() was given a step of 0");
    run.require(std::max({start, stop, step}) < std::int64_t{1} << 40 &&
                    std::min({start, stop, step}) > -(std::int64_t{1} << 40),
                "range() was given a number that is too large");
    const std::int64_t span = step > 0 ? stop - start : start - stop;
    const std::int64_t stride = std::max(step, -step);
    const std::int64_t count = span <= 0 ? 0 : (span + stride - 1) / stride;
    run.require(count <= most, "range() makes ", most, " numbers at most");
    std::vector<Value> numbers;
    for (std::int64_t i = 0; i < count; ++i) numbers.emplace_back(start + i * step);
    return make_list(run, std::move(numbers));
}

}  // namespace

Given::Given(Run& run, std::string_view what, const Arguments& arguments,
             std::initializer_list<std::string_view> names, std::size_t required)
    : run_(run), what_(what), values_(names.size(), nullptr) {
    run.require(arguments.values.size() <= names.size(), what, "() takes ", names.size(),
                " arguments at most");
    for (std::size_t i = 0; i < arguments.values.size(); ++i) values_[i] = &arguments.values[i];
    for (const auto& [name, value] : arguments.named) {
        const auto found = std::find(names.begin(), names.end(), name);
        run.require(found != names.end(), what, "() has no parameter '", name, "'");
        values_[static_cast<std::size_t>(found - names.begin())] = &value;
    }
    for (std::size_t i = 0; i < required; ++i)
        run.require(values_[i] != nullptr, what, "() lacks its argument '", names.begin()[i], "'");
}

const std::string& Given::text(std::size_t i) const {
    run_.require(values_[i] != nullptr && values_[i]->is_text(), what_, "() takes a text, not ",
                 values_[i] != nullptr ? kind_of(*values_[i]) : "nothing");
    return values_[i]->text();
}

std::int64_t Given::integer(std::size_t i, std::int64_t otherwise) const {
    if (values_[i] == nullptr || values_[i]->is_none()) return otherwise;
    run_.require(values_[i]->is_integer(), what_, "() takes an integer, not ",
                 kind_of(*values_[i]));
    return values_[i]->integer();
}

bool Given::truth(std::size_t i, bool otherwise) const {
    return values_[i] == nullptr ? otherwise : jinja::truth(*values_[i]);
}

bool has_method(const Value& self, std::string_view name) {
    return find_method(self, name) != nullptr;
}

Value call_method(Run& run, const Value& self, const std::string& name,
                  const Arguments& arguments) {
    const Method method = find_method(self, name);
    run.require(method != nullptr, kind_of(self), " has no method '", name, "'");
    return method(run, self, arguments);
}

Value attribute_of(Run& run, const Value& value, const std::string& name) {
    if (const Loop* loop = value.loop()) return loop_attribute(run, *loop, name);
    if (const Namespace* names = value.names()) {
        const auto found = names->members.find(name);
        return found == names->members.end() ? Value::undefined(name) : found->second;
    }
    if (has_method(value, name))
        return std::make_shared<const Function>(Function{nullptr, name, value});
    if (const Map* map = value.map()) {
        run.spend(map->members.size());
        if (const Value* found = map->find(name)) return *found;
    }
    run.require(!value.is_undefined(), kind_of(value), ", has no attribute '", name, "'");
    return Value::undefined(name);
}

Value item_of(Run& run, const Value& value, const Value& key) {
    if (key.is_text()) {
        if (const Map* map = value.map()) {
            run.spend(map->members.size());
            if (const Value* found = map->find(key.text())) return *found;
        }
        return attribute_of(run, value, key.text());
    }
    run.require(!value.is_undefined(), kind_of(value), ", has no elements");
    if (!key.is_integer()) return Value::undefined("element");
    std::int64_t i = key.integer();
    if (const List* list = value.list()) {
        if (i < 0) i += std::ssize(list->items);
        if (i < 0 || i >= std::ssize(list->items)) return Value::undefined("element");
        return list->items[static_cast<std::size_t>(i)];
    }
    if (!value.is_text()) return Value::undefined("element");
    const auto count = static_cast<std::int64_t>(characters(run, value.text()));
    if (i < 0) i += count;
    if (i < 0 || i >= count) return Value::undefined("element");
    const std::string_view rest =
        std::string_view(value.text())
            .substr(byte_of_character(value.text(), static_cast<std::size_t>(i)));
    return std::string(rest.substr(0, byte_of_character(rest, 1)));
}

bool is_function(std::string_view name) {
    static constexpr std::string_view names[] = {"range", "namespace", "dict", "raise_exception",
                                                 "strftime_now"};
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Value call_function(Run& run, const std::string& name, const Arguments& arguments,
                    const std::tm& now) {
    if (name == "range") return range_of(run, arguments);
    if (name == "raise_exception") {
        const Given given(run, name, arguments, {"message"}, 1);
        run.refuse(to_text(run, given.at(0)).substr(0, 500));
    }
    if (name == "strftime_now") {
        const Given given(run, name, arguments, {"format"}, 1);
        return make_text(run, time_text(run, given.text(0), now));
    }
    run.require(arguments.values.empty(), name, "() takes arguments with names alone");
    if (name == "dict") return make_map(run, arguments.named);
    const auto names = std::make_shared<Namespace>();
    for (const auto& [member, value] : arguments.named) {
        run.require(value.names() == nullptr, "a namespace holds no other");
        names->members[member] = value;
    }
    return names;
}

std::string_view stripped(Run& run, std::string_view text, const std::string* set, bool left,
                          bool right) {
    const std::size_t before = text.size();
    const auto drops = [&](std::string_view character) {
        return set == nullptr ? is_blank(character) : set->find(character) != std::string::npos;
    };
    while (left && !text.empty()) {
        const std::size_t length = byte_of_character(text, 1);
        if (!drops(text.substr(0, length))) break;
        text.remove_prefix(length);
    }
    while (right && !text.empty()) {
        const std::string_view last = last_character(text);
        if (!drops(last)) break;
        text.remove_suffix(last.size());
    }
    run.spend((before - text.size() + 1) * (set == nullptr ? 1 : set->size() + 1));
    return text;
}

std::string replaced(Run& run, std::string_view text, std::string_view from, std::string_view to,
                     std::int64_t most) {
    run.require(!from.empty(), "replace() was given an empty text to replace");
    std::string out;
    std::size_t at = 0;
    for (std::int64_t count = 0; most < 0 || count < most; ++count) {
        const std::size_t found = text.find(from, at);
        if (found == std::string_view::npos) break;
        run.spend(found - at + from.size() + to.size());
        out.append(text, at, found - at).append(to);
        at = found + from.size();
    }
    run.spend(text.size() - at);
    return out.append(text, at);
}

std::string in_case(Run& run, std::string text, bool upper) {
    run.spend(text.size());
    for (char& c : text) {
        if (upper && c >= 'a' && c <= 'z')
            c = static_cast<char>(c - 'a' + 'A');
        else if (!upper)
            c = ascii::lower(c);
    }
    return text;
}

std::string capitalized(Run& run, std::string text, bool each) {
    text = in_case(run, std::move(text), false);
    bool begins = true;
    for (char& c : text) {
        if (begins && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
        begins = each && !ascii::is_letter(c) && static_cast<unsigned char>(c) < 0x80;
    }
    return text;
}

}  // namespace dlprim::language::jinja
