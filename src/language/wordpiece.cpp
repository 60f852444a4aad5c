// SPDX-License-Identifier: MIT
// WordPiece: the plain form of text, and words in pieces.
#include "language/wordpiece.hpp"

#include "base/text.hpp"

#include <algorithm>

#if DLPRIM_WITH_ICU
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>
#endif

namespace dlprim::language {

namespace {

bool is_in_brackets(std::string_view name) {
    return name.starts_with('[') && name.ends_with(']');
}

}  // namespace

std::string word_piece_name(std::string_view name, std::string_view mark) {
    if (is_in_brackets(name)) return std::string(name);
    if (!mark.empty() && name.starts_with(mark)) return std::string(name.substr(mark.size()));
    return cat(space_mark, name);
}

bool has_capitals(const TokenizerTables& tables) {
    const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
    for (std::size_t i = 0; i < tables.tokens.size(); ++i) {
        const std::string& name = tables.tokens[i];
        const bool plain = i >= tables.kinds.size() || tables.kinds[i] == token_kind::plain;
        if (plain && !is_in_brackets(name) && std::any_of(name.begin(), name.end(), is_capital))
            return true;
    }
    return false;
}

WordPiece::WordPiece(const TokenizerTables& tables, const std::string& source)
    : rules_(tables.word_piece) {
    words_of("", rules_);  // throws without ICU
    for (std::size_t i = 0; i < tables.tokens.size(); ++i) {
        const std::int64_t kind = i < tables.kinds.size() ? tables.kinds[i] : token_kind::plain;
        if (kind != token_kind::plain) continue;
        numbers_.emplace(tables.tokens[i], static_cast<std::int32_t>(i));
        longest_ = std::max(longest_, tables.tokens[i].size());
    }
    const std::int64_t unknown = tables.unknown.value_or(-1);
    if (unknown < 0 || unknown >= std::ssize(tables.tokens))
        fail(ErrorKind::format, "the tokenizer of '", source,
             "' has no token for unknown words among its ", tables.tokens.size());
    unknown_ = static_cast<std::int32_t>(unknown);
}

void WordPiece::encode(std::string_view text, std::vector<std::int32_t>& tokens) const {
    for (const std::string& word : words_of(text, rules_)) encode_word(word, tokens);
}

void WordPiece::encode_word(const std::string& word, std::vector<std::int32_t>& tokens) const {
    const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
    if (std::count_if(word.begin(), word.end(), begins) > rules_.longest_word)
        return tokens.push_back(unknown_);
    const std::size_t before = tokens.size();
    const std::string rest = cat(space_mark, word);
    for (std::size_t at = 0; at < rest.size();) {
        // The sign for a space is no token of a word by itself.
        const std::size_t least = at == 0 ? space_mark.size() : 0;
        std::size_t size = std::min(longest_, rest.size() - at);
        auto found = numbers_.end();
        for (; size > least; --size) {
            if (at + size < rest.size() && !begins(rest[at + size])) continue;
            found = numbers_.find(rest.substr(at, size));
            if (found != numbers_.end()) break;
        }
        if (found == numbers_.end()) {
            tokens.resize(before);
            return tokens.push_back(unknown_);
        }
        tokens.push_back(found->second);
        at += size;
    }
}

#if DLPRIM_WITH_ICU

namespace {

/// Chinese characters as BERT has them: blocks of ideographs, of which not all that Unicode has
/// since then.
bool is_chinese(UChar32 c) {
    constexpr std::pair<UChar32, UChar32> blocks[] = {
        {0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
        {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
    return std::any_of(std::begin(blocks), std::end(blocks),
                       [&](const auto& block) { return c >= block.first && c <= block.second; });
}

/// Whether the character is of one of these general categories, among the characters of Unicode 8.
/// Hugging Face's tokenizers know these alone, and models read text as those cut it.
bool is_of(UChar32 c, std::uint32_t categories) {
    if ((U_GET_GC_MASK(c) & categories) == 0) return false;
    constexpr std::uint8_t known = 8;
    UVersionInfo age;
    u_charAge(c, age);
    return age[0] <= known;
}

bool is_control(UChar32 c) {
    return c != '\t' && c != '\n' && c != '\r' &&
           is_of(c, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK);
}

bool is_sign(UChar32 c) {
    if (c < 0x80) return c > ' ' && c < 0x7F && u_isalnum(c) == 0;
    return is_of(c, U_GC_P_MASK);
}

void append(UChar32 c, std::string& to) {
    char bytes[U8_MAX_LENGTH];
    std::int32_t size = 0;
    U8_APPEND_UNSAFE(bytes, size, c);
    to.append(bytes, static_cast<std::size_t>(size));
}

/// Calls `use` for each character of a text in UTF-8.
template <typename Use>
void each_character(std::string_view text, const Use& use) {
    const auto size = static_cast<std::int32_t>(text.size());
    for (std::int32_t at = 0; at < size;) {
        UChar32 c = 0;
        U8_NEXT(text.data(), at, size, c);
        use(c < 0 ? 0xFFFD : c);
    }
}

/// Without control characters, and with spaces about Chinese ones.
std::string cleaned(std::string_view text, const WordPieceRules& rules) {
    std::string made;
    each_character(text, [&](UChar32 c) {
        if (rules.clean && (c == 0 || c == 0xFFFD || is_control(c))) return;
        const bool alone = rules.chinese && is_chinese(c);
        if (alone) made += ' ';
        append(c, made);
        if (alone) made += ' ';
    });
    return made;
}

/// Without marks that take no room of their own.
std::string without_marks(const std::string& text) {
    UErrorCode status = U_ZERO_ERROR;
    const icu::Normalizer2* nfd = icu::Normalizer2::getNFDInstance(status);
    std::string parted;
    icu::StringByteSink<std::string> sink(&parted);
    if (U_SUCCESS(status))
        nfd->normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())),
                           sink, nullptr, status);
    if (U_FAILURE(status))
        fail(ErrorKind::unsupported, "ICU cannot part characters: ", u_errorName(status));
    std::string made;
    each_character(parted, [&](UChar32 c) {
        if (!is_of(c, U_GC_MN_MASK)) append(c, made);
    });
    return made;
}

std::string lowered(const std::string& text) {
    constexpr UChar32 dotted_capital_i = 0x130, dot_above = 0x307;
    std::string made;
    each_character(text, [&](UChar32 c) {
        append(c == dotted_capital_i ? 'i' : u_tolower(c), made);
        if (c == dotted_capital_i) append(dot_above, made);  // the one that becomes two
    });
    return made;
}

}  // namespace

std::vector<std::string> words_of(std::string_view text, const WordPieceRules& rules) {
    std::string plain = cleaned(text, rules);
    if (rules.strip_accents) plain = without_marks(plain);
    if (rules.lower) plain = lowered(plain);
    std::vector<std::string> words;
    bool goes_on = false;
    each_character(plain, [&](UChar32 c) {
        const bool sign = is_sign(c);
        if (u_isUWhiteSpace(c) != 0) {
            goes_on = false;
            return;
        }
        if (!goes_on || sign) words.emplace_back();
        append(c, words.back());
        goes_on = !sign;
    });
    return words;
}

#else

std::vector<std::string> words_of(std::string_view, const WordPieceRules&) {
    fail(ErrorKind::unsupported,
         "this library was built without ICU, by which WordPiece cuts text: build it with Debian's "
         "libicu-dev");
}

#endif

}  // namespace dlprim::language
