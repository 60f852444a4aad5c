// SPDX-License-Identifier: MIT
// Byte-level BPE: tables, merging, and special tokens.
#include "language/tokenizer.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <queue>
#include <tuple>

namespace dlprim::language {

namespace {

// Kinds of tokens in GGUF's tables.
constexpr std::int64_t plain_token = 1, control_token = 3, user_defined_token = 4;

/// The length of the character of UTF-8 that the text begins with; 0 if it begins with none.
std::size_t character(std::string_view text) {
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

void require_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = character(text.substr(at));
        require(length > 0, "the text is not UTF-8: byte ", at + 1,
                " begins no character. Convert it, with iconv for example");
        at += length;
    }
}

/// The names of bytes in tokens: printable characters of Latin-1 stand for themselves, and the
/// others, in their order, are the characters from 256 on.
const std::array<std::string, 256>& byte_names() {
    static const std::array<std::string, 256> names = [] {
        std::array<std::string, 256> made;
        unsigned next = 256;
        for (unsigned byte = 0; byte < 256; ++byte) {
            const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
            const unsigned code = printable ? byte : next++;
            if (code < 128)
                made[byte] = static_cast<char>(code);
            else
                made[byte] = {static_cast<char>(0xC0 | code >> 6),
                              static_cast<char>(0x80 | (code & 63))};
        }
        return made;
    }();
    return names;
}

/// The bytes that a token's name stands for. What is no byte's name stands for itself.
std::string bytes_of_name(std::string_view name) {
    static const std::unordered_map<std::string, char> bytes = [] {
        std::unordered_map<std::string, char> made;
        for (unsigned byte = 0; byte < 256; ++byte)
            made[byte_names()[byte]] = static_cast<char>(byte);
        return made;
    }();
    std::string result;
    for (std::size_t at = 0; at < name.size();) {
        const std::size_t length = std::max<std::size_t>(character(name.substr(at)), 1);
        const std::string one(name.substr(at, length));
        const auto found = bytes.find(one);
        if (found == bytes.end())
            result += one;
        else
            result += found->second;
        at += length;
    }
    return result;
}

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 |
           static_cast<std::uint32_t>(right);
}

const std::string& splitter_of(const TokenizerTables& tables, const std::string& source) {
    if (tables.model != "gpt2")
        fail(ErrorKind::unsupported, "'", source, "' has a tokenizer of the kind '", tables.model,
             "'; supported is byte-level BPE, 'gpt2'");
    return tables.splitter;
}

}  // namespace

Tokenizer::Tokenizer(const TokenizerTables& tables, std::int64_t vocabulary,
                     const std::string& source)
    : source_(source), splitter_(splitter_of(tables, source)) {
    const std::vector<std::string>& names = tables.tokens;
    const auto damaged = [&](const auto&... what) {
        fail(ErrorKind::format, "the tokenizer of '", source, "' ", what...);
    };
    if (std::ssize(names) != vocabulary)
        damaged("has ", names.size(), " tokens, the model has ", vocabulary);
    if (!tables.kinds.empty() && tables.kinds.size() != names.size())
        damaged("has ", names.size(), " tokens and kinds of ", tables.kinds.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::int64_t kind = tables.kinds.empty() ? plain_token : tables.kinds[i];
        const auto number = static_cast<std::int32_t>(i);
        const bool special = kind == control_token || kind == user_defined_token;
        bytes_.push_back(special ? names[i] : bytes_of_name(names[i]));
        if (special && !names[i].empty())
            special_.emplace(names[i], number);
        else
            numbers_.emplace(names[i], number);
    }
    for (unsigned byte = 0; byte < 256; ++byte) {
        const auto found = numbers_.find(byte_names()[byte]);
        of_byte_[byte] = found == numbers_.end() ? -1 : found->second;
    }
    add_merges(tables.merges);
    const auto number = [&](std::int64_t token) {
        if (token < 0 || token >= vocabulary)
            damaged("names the special token ", token, ", of ", vocabulary);
        return static_cast<std::int32_t>(token);
    };
    for (const std::int64_t token : tables.ends) ends_.push_back(number(token));
    if (tables.begin && tables.add_begin) begin_ = number(*tables.begin);
}

void Tokenizer::add_merges(const std::vector<std::string>& merges) {
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
        const std::string& text = merges[rank];
        const std::size_t space = text.find(' ', 1);
        const auto number = [&](const std::string& name) {
            const auto found = numbers_.find(name);
            if (found == numbers_.end())
                fail(ErrorKind::format, "the tokenizer of '", source_, "' merges '", text,
                     "', and has no token '", name, "'");
            return found->second;
        };
        if (space == std::string::npos)
            fail(ErrorKind::format, "the tokenizer of '", source_, "' has the merge '", text,
                 "', which is not of two tokens");
        const std::string left = text.substr(0, space), right = text.substr(space + 1);
        merges_.emplace(pair_of(number(left), number(right)),
                        Merge{static_cast<std::int32_t>(rank), number(left + right)});
    }
}

void Tokenizer::merge(std::string_view piece, std::vector<std::int32_t>& tokens) const {
    struct Symbol {
        std::int32_t token;
        std::size_t before, after;
    };
    constexpr std::size_t none = ~std::size_t{0};
    std::vector<Symbol> symbols;
    for (const char c : piece) {
        const auto byte = static_cast<unsigned char>(c);
        if (of_byte_[byte] < 0)
            fail(ErrorKind::unsupported, "the tokenizer of '", source_, "' has no token for byte ",
                 unsigned{byte}, " of the text");
        symbols.push_back({of_byte_[byte], symbols.size() - 1, symbols.size() + 1});
    }
    symbols.back().after = none;

    // The earliest merge of the table first, of equal ones the leftmost. An entry is out of date
    // if one of its two tokens has changed.
    using Entry = std::tuple<std::int32_t, std::size_t, std::uint64_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    const auto offer = [&](std::size_t left) {
        if (left == none || symbols[left].after == none) return;
        const std::uint64_t pair = pair_of(symbols[left].token, symbols[symbols[left].after].token);
        if (const auto found = merges_.find(pair); found != merges_.end())
            queue.emplace(found->second.rank, left, pair);
    };
    for (std::size_t i = 0; i < symbols.size(); ++i) offer(i);
    while (!queue.empty()) {
        const auto [rank, at, pair] = queue.top();
        queue.pop();
        Symbol& left = symbols[at];
        if (left.token < 0 || left.after == none ||
            pair_of(left.token, symbols[left.after].token) != pair)
            continue;
        Symbol& right = symbols[left.after];
        left.token = merges_.at(pair).token;
        left.after = right.after;
        right.token = -1;
        if (left.after != none) symbols[left.after].before = at;
        offer(left.before);
        offer(at);
    }
    for (const Symbol& symbol : symbols)
        if (symbol.token >= 0) tokens.push_back(symbol.token);
}

void Tokenizer::encode_plain(std::string_view text, std::vector<std::int32_t>& tokens) const {
    if (text.empty()) return;
    std::string name;
    for (const std::string_view piece : splitter_.split(text)) {
        if (splitter_.takes_whole_pieces()) {
            name.clear();
            for (const char c : piece) name += byte_names()[static_cast<unsigned char>(c)];
            if (const auto found = numbers_.find(name); found != numbers_.end()) {
                tokens.push_back(found->second);
                continue;
            }
        }
        merge(piece, tokens);
    }
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool special) const {
    require_utf8(text);
    std::vector<std::int32_t> tokens;
    // Where each special token comes next; those that do not come any more are left out.
    struct Next {
        std::size_t at;
        std::string_view name;
        std::int32_t token;
    };
    std::vector<Next> next;
    for (const auto& [name, token] : special_)
        if (const std::size_t at = text.find(name); special && at != std::string_view::npos)
            next.push_back({at, name, token});
    std::size_t done = 0;
    while (!next.empty()) {
        // The leftmost, of those the longest.
        const auto first = std::min_element(next.begin(), next.end(), [](auto& a, auto& b) {
            return std::tuple(a.at, b.name.size()) < std::tuple(b.at, a.name.size());
        });
        if (first->at >= done) {
            encode_plain(text.substr(done, first->at - done), tokens);
            tokens.push_back(first->token);
            done = first->at + first->name.size();
        }
        first->at = text.find(first->name, std::max(done, first->at + 1));
        if (first->at == std::string_view::npos) next.erase(first);
    }
    encode_plain(text.substr(done), tokens);
    return tokens;
}

std::string Tokenizer::bytes(std::int32_t token) const {
    require(token >= 0 && token < std::ssize(bytes_), "token ", token, " is none of ",
            bytes_.size());
    return bytes_[static_cast<std::size_t>(token)];
}

bool Tokenizer::ends(std::int32_t token) const {
    return std::find(ends_.begin(), ends_.end(), token) != ends_.end();
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
