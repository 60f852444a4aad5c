// SPDX-License-Identifier: MIT
// Characters of UTF-8, and which of them are white space.
#include "language/characters.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <iterator>

namespace dlprim::language {

namespace {

/// Characters that are white space by Unicode.
constexpr std::string_view spaces[] = {
    "\t",     "\n",     "\v",     "\f",     "\r",     " ",      "\u0085", "\u00a0", "\u1680",
    "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008",
    "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};

/// The size of the space that is there, or 0 if none is.
template <typename IsThere>
std::size_t size_of_space(const IsThere& is_there) {
    const auto* const found = std::find_if(std::begin(spaces), std::end(spaces), is_there);
    return found == std::end(spaces) ? 0 : found->size();
}

}  // namespace

std::size_t character_size(std::string_view text) {
    const auto byte = [&](std::size_t i) {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    };
    const unsigned first = byte(0);
    if (first < 0x80) return text.empty() ? 0 : 1;
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xC0) != 0x80) return 0;
    // Neither longer than needed, nor a surrogate, nor beyond the last character.
    const bool wrong = first < 0xC2 || first > 0xF4 || (first == 0xE0 && byte(1) < 0xA0) ||
                       (first == 0xED && byte(1) > 0x9F) || (first == 0xF0 && byte(1) < 0x90) ||
                       (first == 0xF4 && byte(1) > 0x8F);
    return wrong ? 0 : length;
}

std::size_t character_step(std::string_view text) {
    return std::max<std::size_t>(1, character_size(text));
}

void require_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = character_size(text.substr(at));
        require(length > 0, "the text is not UTF-8: byte ", at + 1,
                " begins no character. Convert it, with iconv for example");
        at += length;
    }
}

std::size_t space_at_begin(std::string_view text) {
    const std::size_t all = text.size();
    const auto is_first = [&](std::string_view space) { return text.starts_with(space); };
    while (const std::size_t size = size_of_space(is_first)) text.remove_prefix(size);
    return all - text.size();
}

std::size_t space_at_end(std::string_view text) {
    const std::size_t all = text.size();
    const auto is_last = [&](std::string_view space) { return text.ends_with(space); };
    while (const std::size_t size = size_of_space(is_last)) text.remove_suffix(size);
    return all - text.size();
}

std::size_t unfinished(std::string_view text) {
    // A character has at most three bytes that do not end it.
    for (std::size_t count = 1; count <= std::min<std::size_t>(3, text.size()); ++count) {
        const auto byte = static_cast<unsigned char>(text[text.size() - count]);
        if ((byte & 0xC0) == 0x80) continue;
        const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
        return length > count && byte <= 0xF4 ? count : 0;
    }
    return 0;
}

}  // namespace dlprim::language
