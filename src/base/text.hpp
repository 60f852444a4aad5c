// SPDX-License-Identifier: MIT
// Text helpers: joining pieces into messages, raising errors, nearest names for misspellings.
#pragma once

#include <dlprim/error.hpp>

#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// Concatenates anything that streams.
template <typename... Parts>
std::string cat(const Parts&... parts) {
    std::ostringstream out;
    (out << ... << parts);
    return out.str();
}

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
