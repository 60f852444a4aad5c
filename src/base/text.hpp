// SPDX-License-Identifier: MIT
// Text helpers: joining pieces into messages, keys and kernels, reading numbers, raising errors,
// nearest names for misspellings.
//
// A program may set any locale, and the library's text must not change with it, because machines
// read its keys, kernels and files. So nothing here depends on a locale, neither C's nor C++'s, and
// no other file of src uses the standard streams, printf, strtod or <cctype>
// (tests/locale_rules_test.py).
#pragma once

#include <dlprim/error.hpp>

#include <algorithm>
#include <charconv>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace dlprim {

/// Text that grows by `<<`. Numbers are written as std::ostream writes them in the classic locale:
/// integers in full, float and double with up to six significant digits (as by "%g"), bool as 0 or
/// 1. What has a str(), such as a Shape, is written as that says: in an argument of require() it
/// makes no text unless the text is needed.
class TextWriter {
  public:
    template <typename T>
    TextWriter& operator<<(const T& value) {
        if constexpr (std::is_convertible_v<const T&, std::string_view>)
            text_ += std::string_view(value);
        else if constexpr (std::is_same_v<T, char>)
            text_ += value;
        else if constexpr (requires { std::string(value.str()); })
            text_ += value.str();
        else if constexpr (std::is_floating_point_v<T>)
            put(static_cast<double>(value));
        else if constexpr (std::is_signed_v<T> ||
                           (std::is_enum_v<T> && std::is_convertible_v<T, long long>))
            put(static_cast<long long>(value));
        else
            put_unsigned(value);
        return *this;
    }
    const std::string& str() const& { return text_; }
    std::string str() && { return std::move(text_); }

  private:
    void put(double value);
    void put(long long value);
    void put(unsigned long long value);
    template <typename T>
    void put_unsigned(T value) {
        static_assert(std::is_unsigned_v<T> && sizeof(T) <= 8, "no text is made of this type");
        put(static_cast<unsigned long long>(value));
    }

    std::string text_;
};

/// Concatenates the parts, each written as TextWriter writes it.
template <typename... Parts>
std::string cat(const Parts&... parts) {
    TextWriter out;
    (out << ... << parts);
    return std::move(out).str();
}

/// Text that reads back as the same number: the text of TextWriter if that reads back exactly, else
/// the shortest text that does. For keys, programs and files, where six digits could make two
/// numbers equal.
std::string exact(double value);
/// `value` with a given number of digits after the point, as by "%.*f".
std::string fixed(double value, int digits);

/// The number at the beginning of the text, after blanks, or `otherwise` if there is none. The text
/// after the number is ignored.
template <typename T>
T leading_number(std::string_view text, T otherwise) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    T value = otherwise;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    return read.ec == std::errc() ? value : otherwise;
}

/// Character classes by ASCII code. Other characters belong to no class and have no case.
namespace ascii {
constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr bool is_letter(char c) {
    return lower(c) >= 'a' && lower(c) <= 'z';
}
constexpr bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}
/// The characters of names: letters, digits and '_'.
constexpr bool is_word(char c) {
    return is_letter(c) || is_digit(c) || c == '_';
}
}  // namespace ascii

/// Throws Error(kind, the parts joined).
template <typename... Parts>
[[noreturn]] void fail(ErrorKind kind, const Parts&... parts) {
    throw Error(kind, cat(parts...));
}

/// fail(invalid_argument, ...) unless `condition`.
template <typename... Parts>
void require(bool condition, const Parts&... parts) {
    if (!condition) fail(ErrorKind::invalid_argument, parts...);
}

std::string join(std::span<const std::string> parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);

/// The candidate with the smallest edit distance to `name`, when that is at most a third of the
/// name's length; else one that the name begins with or is short for; else empty.
std::string nearest(std::string_view name, std::span<const std::string> candidates);
/// "; did you mean 'X'?" or empty.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

}  // namespace dlprim
