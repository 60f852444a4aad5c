// SPDX-License-Identifier: MIT
// Attrs: typed reading of options, and their canonical text.
#include "base/attrs.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <limits>

namespace dlprim {
namespace {

bool whole(double value) {
    return std::trunc(value) == value && std::abs(value) < 0x1p62;
}

// Shortest text that reads back as the same double.
std::string text_of(double value) {
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
    return std::string(buffer, end);
}

// Escapes what separates items, so that different texts never print alike.
std::string escaped(const std::string& text) {
    static const char digits[] = "0123456789abcdef";
    std::string result;
    for (char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte <= ' ' || c == '%' || c == ',') {
            result += '%';
            result += digits[byte >> 4];
            result += digits[byte & 15];
        } else {
            result += c;
        }
    }
    return result;
}

struct Printer {
    std::string operator()(bool value) const { return value ? "1" : "0"; }
    std::string operator()(std::int64_t value) const { return cat(value); }
    std::string operator()(double value) const { return text_of(value); }
    std::string operator()(const std::string& value) const { return escaped(value); }
    template <typename T>
    std::string operator()(const std::vector<T>& values) const {
        std::string text;
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (i > 0) text += ',';
            text += (*this)(values[i]);
        }
        return text;
    }
};

[[noreturn]] void wrong_kind(std::string_view name, const char* wanted, const Attr& value) {
    fail(ErrorKind::invalid_argument, "option '", name, "' must be ", wanted, ", not '",
         std::visit(Printer{}, value), "'");
}

/// Whether one may stand for the other. Numbers never: zeros of both signs are equal.
bool is_same(const Attr& one, const Attr& other) {
    return one == other && !std::holds_alternative<double>(one) &&
           !std::holds_alternative<Doubles>(one);
}

/// Where the item of this name is, or belongs.
template <typename Items>
auto place_of(Items& items, std::string_view name) {
    // Schemas add options in order, so the place is often the end.
    if (items.empty() || items.back().first < name) return items.end();
    return std::lower_bound(
        items.begin(), items.end(), name,
        [](const Attrs::Item& item, std::string_view n) { return item.first.compare(n) < 0; });
}

}  // namespace

Attrs::Attrs(std::initializer_list<Item> items) {
    if (items.size() == 0) return;
    items_ = std::make_shared<std::vector<Item>>();
    items_->reserve(items.size());
    for (const auto& [name, value] : items)
        if (!has(name)) set(name, value);
}

std::vector<Attrs::Item>& Attrs::own_items() {
    if (!items_)
        items_ = std::make_shared<std::vector<Item>>();
    else if (items_.use_count() > 1)
        items_ = std::make_shared<std::vector<Item>>(*items_);
    else
        // What another thread has read of its copy, which is gone, comes before what is written.
        std::atomic_thread_fence(std::memory_order_acquire);
    return *items_;
}

const std::vector<Attrs::Item>& Attrs::items() const {
    static const std::vector<Item> none;
    return items_ ? *items_ : none;
}

Attrs& Attrs::set(std::string_view name, Attr value) {
    std::vector<Item>& items = own_items();
    const auto place = place_of(items, name);
    if (place != items.end() && place->first == name)
        place->second = std::move(value);
    else
        items.emplace(place, std::string(name), std::move(value));
    return *this;
}

void Attrs::erase(std::string_view name) {
    if (!has(name)) return;
    std::vector<Item>& items = own_items();
    items.erase(place_of(items, name));
}

const Attr* Attrs::find(std::string_view name) const {
    if (!items_) return nullptr;
    for (const auto& [known, value] : *items_)
        if (known.size() == name.size() && known == name) return &value;
    return nullptr;
}

const Attr& Attrs::at(std::string_view name) const {
    const Attr* const found = find(name);
    if (found == nullptr) fail(ErrorKind::invalid_argument, "option '", name, "' is missing");
    return *found;
}

bool Attrs::operator==(const Attrs& other) const {
    return items_ == other.items_ || items() == other.items();
}

bool Attrs::boolean(std::string_view name) const {
    const Attr& value = at(name);
    if (const auto* flag = std::get_if<bool>(&value)) return *flag;
    if (const auto* number = std::get_if<std::int64_t>(&value);
        number && (*number == 0 || *number == 1))
        return *number == 1;
    wrong_kind(name, "true or false", value);
}

std::int64_t Attrs::integer(std::string_view name) const {
    const Attr& value = at(name);
    if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
    if (const auto* number = std::get_if<double>(&value); number && whole(*number))
        return static_cast<std::int64_t>(*number);
    wrong_kind(name, "an integer", value);
}

double Attrs::number(std::string_view name) const {
    const Attr& value = at(name);
    if (const auto* number = std::get_if<double>(&value)) return *number;
    if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
    wrong_kind(name, "a number", value);
}

const std::string& Attrs::text(std::string_view name) const {
    const Attr& value = at(name);
    if (const auto* text = std::get_if<std::string>(&value)) return *text;
    wrong_kind(name, "a text", value);
}

Ints Attrs::ints(std::string_view name) const {
    const Attr& value = at(name);
    if (const auto* list = std::get_if<Ints>(&value)) return *list;
    if (const auto* list = std::get_if<Doubles>(&value)) {
        Ints result;
        for (double number : *list) {
            if (!whole(number)) wrong_kind(name, "a list of integers", value);
            result.push_back(static_cast<std::int64_t>(number));
        }
        return result;
    }
    if (std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value))
        return {integer(name)};
    if (const auto* list = std::get_if<Strings>(&value); list && list->empty()) return {};
    wrong_kind(name, "an integer or a list of integers", value);
}

Doubles Attrs::numbers(std::string_view name) const {
    const Attr& value = at(name);
    if (const auto* list = std::get_if<Doubles>(&value)) return *list;
    if (const auto* list = std::get_if<Ints>(&value)) return {list->begin(), list->end()};
    if (std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value))
        return {number(name)};
    if (const auto* list = std::get_if<Strings>(&value); list && list->empty()) return {};
    wrong_kind(name, "a number or a list of numbers", value);
}

Strings Attrs::texts(std::string_view name) const {
    const Attr& value = at(name);
    if (const auto* list = std::get_if<Strings>(&value)) return *list;
    if (const auto* text = std::get_if<std::string>(&value)) return {*text};
    if (const auto* list = std::get_if<Ints>(&value); list && list->empty()) return {};
    if (const auto* list = std::get_if<Doubles>(&value); list && list->empty()) return {};
    wrong_kind(name, "a text or a list of texts", value);
}

std::string Attrs::str() const {
    std::string text;
    for (const auto& [name, value] : items()) {
        if (!text.empty()) text += ' ';
        text += name;
        text += '=';
        text += std::visit(Printer{}, value);
    }
    return text;
}

std::size_t choice_of(const ops::OptionText& option, std::string_view value) {
    std::size_t count = 0;
    for (const std::string_view choice : option.choices) {
        if (choice.empty()) break;
        if (choice == value) return count;
        ++count;
    }
    const std::vector<std::string> choices(
        option.choices.begin(), option.choices.begin() + static_cast<std::ptrdiff_t>(count));
    fail(ErrorKind::invalid_argument, option.name, " '", value, "' is not one of ",
         join(choices, ", "), did_you_mean(std::string(value), choices));
}

namespace {

/// The names of all options, with the other names.
std::vector<std::string> names_of(const std::vector<OptionSpec>& options) {
    std::vector<std::string> all;
    for (const OptionSpec& option : options)
        for (const std::string_view name : {option.text.name, option.text.other_name})
            if (!name.empty()) all.emplace_back(name);
    return all;
}

/// The value in the option's kind. Throws where it is of another, or not allowed.
Attr value_of(const OptionSpec& option, const Attrs& given) {
    const std::string_view name = option.text.name;
    const auto in_range = [&](auto value) {
        // Written so that NaN is in no bounds.
        constexpr double infinity = std::numeric_limits<double>::infinity();
        const auto number = static_cast<double>(value);
        if (option.text.least > -infinity && !(number >= option.text.least))
            fail(ErrorKind::invalid_argument, name, " must be at least ",
                 text_of(option.text.least), ", not ", Printer()(value));
        if (option.text.most < infinity && !(number <= option.text.most))
            fail(ErrorKind::invalid_argument, name, " must be at most ", text_of(option.text.most),
                 ", not ", Printer()(value));
        return value;
    };
    const auto all_in_range = [&](auto values) {
        for (const auto value : values) in_range(value);
        return values;
    };
    switch (option.kind) {
        case OptionKind::boolean:
            return given.boolean(name);
        case OptionKind::integer:
            return in_range(given.integer(name));
        case OptionKind::number:
            return in_range(given.number(name));
        case OptionKind::text:
            if (!option.text.choices[0].empty()) choice_of(option.text, given.text(name));
            return given.text(name);
        case OptionKind::integers:
            return all_in_range(given.ints(name));
        case OptionKind::numbers:
            return all_in_range(given.numbers(name));
        case OptionKind::texts:
            return given.texts(name);
    }
    return {};
}

}  // namespace

void Schema::add(Attr value, const ops::OptionText& text) {
    const auto kind = static_cast<OptionKind>(value.index());
    defaults_.set(text.name, value);
    options_.push_back({kind, std::move(value), text});
}

Attrs Schema::complete(const Attrs& as_written, std::string_view where) const {
    const std::string_view gap = where.empty() || where.back() == ' ' ? "" : " ";
    Attrs result = defaults_, renamed;
    const bool renames =
        std::any_of(options_.begin(), options_.end(), [&](const OptionSpec& option) {
            return !option.text.other_name.empty() && as_written.has(option.text.other_name);
        });
    if (renames) renamed = as_written;
    const Attrs& given = renames ? renamed : as_written;
    for (const auto& [kind, value, text] : options_) {
        if (text.other_name.empty()) continue;
        const Attr* const other = as_written.find(text.other_name);
        if (other == nullptr) continue;
        require(!as_written.has(text.name), where, gap, "options '", text.name, "' and '",
                text.other_name, "' are the same option; give it once");
        renamed.set(text.name, *other);
        renamed.erase(text.other_name);
    }
    for (const auto& [name, value] : given.items()) {
        const auto is_it = [&name = name](const OptionSpec& option) {
            return name == option.text.name || name == option.text.other_name;
        };
        const bool known = name == "fwd_algo" || name == "bwd_data_algo" ||
                           name == "bwd_filter_algo" ||
                           std::any_of(options_.begin(), options_.end(), is_it);
        if (!known)
            fail(ErrorKind::invalid_argument, where, gap, "there is no option '", name, "'",
                 did_you_mean(name, names_of(options_)));
    }
    for (const OptionSpec& option : options_) {
        const std::string_view name = option.text.name;
        if (!given.has(name)) {
            if (option.text.is_required)
                fail(ErrorKind::invalid_argument, where, gap, "option '", name, "' is missing");
            continue;
        }
        try {
            Attr value = value_of(option, given);
            if (!is_same(value, option.value)) result.set(name, std::move(value));
        } catch (const Error& error) {
            fail(error.kind(), where, gap, error.what());
        }
    }
    return result;
}

}  // namespace dlprim
