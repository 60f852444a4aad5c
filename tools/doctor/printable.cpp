// SPDX-License-Identifier: MIT
// printable(): decodes UTF-8, and escapes what is none.
#include "doctor/printable.hpp"

#include <array>
#include <cstdint>
#include <cstdio>

namespace dlprim::doctor {

namespace {

/// A character and the bytes that it takes; 0 bytes where the text does not begin with UTF-8.
struct Decoded {
    std::uint32_t character = 0;
    std::size_t bytes = 0;
};

Decoded decode(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned first = byte(0);
    if (first < 0x80) return {first, 1};
    const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
    std::uint32_t character = first & (0x7fu >> bytes);
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return {};
        character = character << 6 | (byte(i) & 0x3f);
    }
    constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = character >= 0xd800 && character < 0xe000;
    if (character < least[bytes] || surrogate || character > 0x10ffff) return {};
    return {character, bytes};
}

/// Whether a terminal shows the character itself. Not so controls, marks of direction, characters
/// without width, those of private use, and those that are none.
bool is_shown(std::uint32_t c) {
    struct Range {
        std::uint32_t first, last;
    };
    constexpr Range hidden[] = {{0, 0x1f},        {0x7f, 0xa0},       {0xad, 0xad},
                                {0x61c, 0x61c},   {0x180e, 0x180e},   {0x2000, 0x200f},
                                {0x2028, 0x202f}, {0x205f, 0x206f},   {0x3000, 0x3000},
                                {0xe000, 0xf8ff}, {0xfeff, 0xfeff},   {0xfff0, 0xfffb},
                                {0xfffe, 0xffff}, {0x1fffe, 0x1ffff}, {0xe0000, 0x10ffff}};
    for (const Range& range : hidden)
        if (c >= range.first && c <= range.last) return false;
    return true;
}

std::string escaped(const char* format, std::uint32_t value) {
    char text[16];
    std::snprintf(text, sizeof(text), format, static_cast<unsigned>(value));
    return text;
}

}  // namespace

std::string printable(std::string_view text) {
    std::string shown;
    while (!text.empty()) {
        const auto byte = static_cast<unsigned char>(text.front());
        const Decoded next = decode(text);
        if (byte == ' ' || (byte >= '\t' && byte <= '\r'))
            shown += ' ';
        else if (next.bytes > 0 && is_shown(next.character))
            shown += text.substr(0, next.bytes);
        else if (next.bytes > 1)
            shown += escaped(next.character > 0xffff ? "\\U%08x" : "\\u%04x", next.character);
        else
            shown += escaped("\\x%02x", byte);
        text.remove_prefix(next.bytes > 0 ? next.bytes : 1);
    }
    return shown;
}

}  // namespace dlprim::doctor
