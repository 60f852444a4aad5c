// SPDX-License-Identifier: MIT
// Reading of SentencePiece's tables of characters. The trie is a double array as the library
// darts-clone (Yata) lays it out.
#include "language/character_map.hpp"

#include "base/text.hpp"
#include "language/characters.hpp"

#include <algorithm>
#include <cstring>

#if DLPRIM_WITH_ICU
#include <unicode/brkiter.h>
#include <unicode/utext.h>
#include <memory>
#endif

namespace dlprim::language {

namespace {

// A unit of the trie: the byte that leads to it, whether a key ends there, and where its children
// are. The child that has no byte holds the value.
std::uint32_t label_of(std::uint32_t unit) {
    return unit & (1u << 31 | 0xFF);
}
bool ends_key(std::uint32_t unit) {
    return (unit >> 8 & 1) != 0;
}
std::uint32_t value_of(std::uint32_t unit) {
    return unit & ~(1u << 31);
}
std::uint32_t offset_of(std::uint32_t unit) {
    return unit >> 10 << ((unit & 1u << 9) >> 6);
}

/// No character of Unicode has a plain form of so many times its bytes.
constexpr std::size_t most_growth = 64;

void require_length(const std::string& made, std::size_t most) {
    if (made.size() > most)
        fail(ErrorKind::format, "the tokenizer's table of characters is damaged: it makes a text ",
             most_growth, " times as long");
}

std::uint32_t read_32(std::string_view bytes, std::size_t at) {
    std::uint32_t made = 0;
    for (std::size_t i = 0; i < 4; ++i)
        made |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    return made;
}

#if DLPRIM_WITH_ICU

/// Calls `use` with each character as people see it, such as a letter with its accents.
template <typename Use>
void each_grapheme(std::string_view text, const Use& use) {
    UErrorCode status = U_ZERO_ERROR;
    const std::unique_ptr<icu::BreakIterator> breaks(
        icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
    UText* const opened =
        utext_openUTF8(nullptr, text.data(), static_cast<std::int64_t>(text.size()), &status);
    const std::unique_ptr<UText, UText* (*)(UText*)> held(opened, utext_close);
    if (U_SUCCESS(status)) breaks->setText(opened, status);
    if (U_FAILURE(status))
        fail(ErrorKind::unsupported, "ICU cannot cut text into characters: ", u_errorName(status));
    for (std::int32_t begin = 0, end = 0; (end = breaks->next()) != icu::BreakIterator::DONE;
         begin = end)
        use(text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
}

#else

template <typename Use>
void each_grapheme(std::string_view, const Use&) {
    fail(ErrorKind::unsupported,
         "this library was built without ICU, by which text is cut into characters: build it with "
         "Debian's libicu-dev");
}

#endif

}  // namespace

CharacterMap::CharacterMap(std::string_view bytes, const std::string& source) {
    if (bytes.empty()) return;
    const auto damaged = [&] {
        fail(ErrorKind::format, "the table of characters of the tokenizer of '", source,
             "' is damaged");
    };
    if (bytes.size() < 4) damaged();
    const std::size_t size = read_32(bytes, 0);
    bytes.remove_prefix(4);
    if (size == 0 || size % 4 != 0 || size > bytes.size()) damaged();
    for (std::size_t at = 0; at < size; at += 4) trie_.push_back(read_32(bytes, at));
    replacements_ = bytes.substr(size);
    for (std::string_view left = replacements_; !left.empty();) {
        const std::size_t character = character_size(left);
        if (character == 0) damaged();
        left.remove_prefix(character);
    }
    each_grapheme("", [](std::string_view) {});  // throws without ICU
}

CharacterMap::Entry CharacterMap::entry(std::string_view text, bool longest) const {
    Entry found;
    std::size_t at = offset_of(trie_.front());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::uint32_t byte = static_cast<unsigned char>(text[i]);
        at ^= byte;
        if (at >= trie_.size() || label_of(trie_[at]) != byte) break;
        const std::uint32_t unit = trie_[at];
        at ^= offset_of(unit);
        if (!ends_key(unit)) continue;
        if (at >= trie_.size() || value_of(trie_[at]) >= replacements_.size()) break;
        found = {i + 1, replacements_.c_str() + value_of(trie_[at])};
        if (!longest) break;
    }
    return found;
}

std::string CharacterMap::plain_by_longest(std::string_view text) const {
    if (trie_.empty()) return std::string(text);
    std::string made;
    const std::size_t most = most_growth * text.size();
    while (!text.empty()) {
        Entry next = entry(text, true);
        if (next.size == 0) {
            next.size = character_step(text);
            next.becomes = text.substr(0, next.size);
        }
        made += next.becomes;
        text.remove_prefix(next.size);
        require_length(made, most);
    }
    return made;
}

void CharacterMap::append_plain(std::string_view character, std::string& to) const {
    constexpr std::size_t longest = 5;  // bytes of what is replaced as a whole
    if (character.size() <= longest)
        if (const Entry found = entry(character, false); found.size > 0) {
            to += found.becomes;
            return;
        }
    while (!character.empty()) {
        const std::string_view point = character.substr(0, character_step(character));
        const Entry found = entry(point, false);
        to += found.size > 0 ? found.becomes : point;
        character.remove_prefix(point.size());
    }
}

std::string CharacterMap::plain_by_characters(std::string_view text) const {
    if (trie_.empty()) return std::string(text);
    std::string made;
    const std::size_t most = most_growth * text.size();
    each_grapheme(text, [&](std::string_view character) {
        append_plain(character, made);
        require_length(made, most);
    });
    return made;
}

}  // namespace dlprim::language
