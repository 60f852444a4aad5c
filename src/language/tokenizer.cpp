// SPDX-License-Identifier: MIT
// Tokenizers: tables, merging, and special tokens.
#include "language/tokenizer.hpp"

#include "base/text.hpp"
#include "language/characters.hpp"

#include <algorithm>
#include <iterator>
#include <queue>
#include <tuple>

namespace dlprim::language {

namespace {

constexpr std::size_t none = ~std::size_t{0};

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
        const std::size_t length = character_step(name.substr(at));
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

bool is_byte_level(const TokenizerTables& tables, const std::string& source) {
    if (tables.model != "gpt2" && tables.model != "llama" && tables.model != "bert" &&
        tables.model != "t5")
        fail(ErrorKind::unsupported, "'", source, "' has a tokenizer of the kind '", tables.model,
             "'; supported are byte-level BPE, 'gpt2', BPE of SentencePiece, 'llama', Unigram, "
             "'t5', and WordPiece, 'bert'");
    return tables.model == "gpt2";
}

Splitter splitter_of(const TokenizerTables& tables) {
    const bool named = tables.patterns.empty() && tables.model == "gpt2";
    return named ? Splitter(tables.splitter) : Splitter(tables.patterns, tables.whole_pieces);
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
    std::string made;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t next = std::min(text.find(from, at), text.size());
        made += text.substr(at, next - at);
        if (next < text.size()) made += to;
        at = next + from.size();
    }
    return made;
}

/// The name of a byte where characters are symbols: "<0x0A>".
std::string name_of_byte(unsigned byte) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    return cat("<0x", digits[byte / 16], digits[byte % 16], ">");
}

}  // namespace

Tokenizer::Tokenizer(const TokenizerTables& tables, std::int64_t vocabulary,
                     const std::string& source)
    : source_(source),
      byte_level_(is_byte_level(tables, source)),
      splitter_(splitter_of(tables)),
      composed_(tables.composed),
      space_(tables.space),
      scores_(tables.scores),
      strips_(tables.strips) {
    const auto damaged = [&](const auto&... what) {
        fail(ErrorKind::format, "the tokenizer of '", source, "' ", what...);
    };
    const std::size_t count = tables.tokens.size();
    if (static_cast<std::int64_t>(count) != vocabulary)
        damaged("has ", count, " tokens, the model has ", vocabulary);
    if (!tables.kinds.empty() && tables.kinds.size() != count)
        damaged("has ", count, " tokens and kinds of ", tables.kinds.size());
    if (!scores_.empty() && scores_.size() != count)
        damaged("has ", count, " tokens and scores of ", scores_.size());
    if (tables.model == "bert") word_piece_.emplace(tables, source);
    if (tables.model == "t5") unigram_.emplace(tables, source);
    add_tokens(tables);
    add_merges(tables.merges);
    const auto number = [&](std::int64_t token) {
        if (token < 0 || token >= vocabulary)
            damaged("names the special token ", token, ", of ", vocabulary);
        return static_cast<std::int32_t>(token);
    };
    for (const std::int64_t token : tables.ends) ends_.push_back(number(token));
    if (tables.begin && tables.add_begin) begin_ = number(*tables.begin);
    if (tables.separator) separator_ = number(*tables.separator);
    if (tables.unknown) unknown_ = number(*tables.unknown);
}

void Tokenizer::add_tokens(const TokenizerTables& tables) {
    of_byte_.fill(-1);
    std::unordered_map<std::string, unsigned> bytes;
    for (unsigned byte = 0; byte < 256; ++byte)
        bytes.emplace(byte_level_ ? byte_names()[byte] : name_of_byte(byte), byte);
    for (std::size_t i = 0; i < tables.tokens.size(); ++i) {
        const std::string& name = tables.tokens[i];
        const std::int64_t kind = tables.kinds.empty() ? token_kind::plain : tables.kinds[i];
        const auto number = static_cast<std::int32_t>(i);
        const auto byte = bytes.find(name);
        if (kind == token_kind::unknown) unknown_ = number;
        const bool special = kind == token_kind::control || kind == token_kind::user_defined ||
                             (kind == token_kind::unknown && !byte_level_);
        const bool is_byte =
            byte != bytes.end() && !special && (byte_level_ || kind == token_kind::byte);
        if (is_byte && of_byte_[byte->second] < 0) of_byte_[byte->second] = number;
        if (special && !name.empty())
            special_.emplace(name, number);
        else if (byte_level_ || kind != token_kind::byte)
            numbers_.emplace(name, number);
        if (is_byte && !byte_level_)
            bytes_.emplace_back(1, static_cast<char>(byte->second));
        else if (special)
            bytes_.push_back(name);
        else
            bytes_.push_back(byte_level_ ? bytes_of_name(name) : replaced(name, space_mark, " "));
    }
}

std::int32_t Tokenizer::find(std::string_view name) const {
    const auto found = numbers_.find(name);
    return found == numbers_.end() ? -1 : found->second;
}

void Tokenizer::add_merges(const std::vector<std::string>& merges) {
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
        const std::string& text = merges[rank];
        const std::size_t space = text.find(' ', 1);
        const auto number = [&](const std::string& name) {
            const std::int32_t token = find(name);
            if (token < 0)
                fail(ErrorKind::format, "the tokenizer of '", source_, "' merges '", text,
                     "', and has no token '", name, "'");
            return token;
        };
        if (space == std::string::npos)
            fail(ErrorKind::format, "the tokenizer of '", source_, "' has the merge '", text,
                 "', which is not of two tokens");
        const std::string left = text.substr(0, space), right = text.substr(space + 1);
        merges_.emplace(pair_of(number(left), number(right)),
                        Merge{static_cast<double>(rank), number(left + right)});
    }
}

std::vector<Tokenizer::Symbol> Tokenizer::symbols_of(std::string_view piece) const {
    std::vector<Symbol> symbols;
    const auto add = [&](std::size_t begin, std::size_t size, std::int32_t token) {
        symbols.push_back({begin, size, token, symbols.size() - 1, symbols.size() + 1});
    };
    for (std::size_t at = 0; at < piece.size();) {
        const std::size_t size = byte_level_ ? 1 : character_size(piece.substr(at));
        const auto byte = static_cast<unsigned char>(piece[at]);
        add(at, size, byte_level_ ? of_byte_[byte] : find(piece.substr(at, size)));
        at += size;
    }
    symbols.back().after = none;
    return symbols;
}

std::optional<Tokenizer::Merge> Tokenizer::merge_of(std::string_view piece, const Symbol& left,
                                                    const Symbol& right) const {
    if (scores_.empty()) {
        const auto found = merges_.find(pair_of(left.token, right.token));
        if (found == merges_.end() || left.token < 0 || right.token < 0) return std::nullopt;
        return found->second;
    }
    const std::int32_t token = find(piece.substr(left.begin, left.size + right.size));
    if (token < 0) return std::nullopt;
    return Merge{-scores_[static_cast<std::size_t>(token)], token};
}

/// The symbols of a piece, merged as far as they can be.
class Tokenizer::Merger {
  public:
    Merger(const Tokenizer& tokenizer, std::string_view piece)
        : tokenizer_(tokenizer), piece_(piece), symbols_(tokenizer.symbols_of(piece)) {
        for (std::size_t i = 0; i < symbols_.size(); ++i) offer(i);
        while (!queue_.empty()) {
            const Entry next = queue_.top();
            queue_.pop();
            if (is_valid(next)) merge(next);
        }
    }
    /// Those that are left, in order.
    template <typename Use>
    void each(const Use& use) const {
        for (std::size_t at = 0; at != none; at = symbols_[at].after) use(symbols_[at]);
    }

  private:
    /// Two neighbours, to be merged: the lowest rank first, of equal ones the leftmost.
    struct Entry {
        double rank;
        std::size_t left, size;  ///< size of both, in bytes
        std::int32_t token;
        bool operator>(const Entry& other) const {
            return std::pair(rank, left) > std::pair(other.rank, other.left);
        }
    };
    void offer(std::size_t at) {
        if (at == none || symbols_[at].after == none) return;
        const Symbol &left = symbols_[at], &right = symbols_[left.after];
        if (const auto merge = tokenizer_.merge_of(piece_, left, right))
            queue_.push({merge->rank, at, left.size + right.size, merge->token});
    }
    /// Symbols only grow, so that a pair of the same size is the same pair.
    bool is_valid(const Entry& entry) const {
        const Symbol& left = symbols_[entry.left];
        return left.size > 0 && left.after != none &&
               left.size + symbols_[left.after].size == entry.size;
    }
    void merge(const Entry& entry) {
        Symbol& left = symbols_[entry.left];
        Symbol& right = symbols_[left.after];
        left.token = entry.token;
        left.size = entry.size;
        left.after = right.after;
        right.size = 0;
        if (left.after != none) symbols_[left.after].before = entry.left;
        offer(left.before);
        offer(entry.left);
    }

    const Tokenizer& tokenizer_;
    const std::string_view piece_;
    std::vector<Symbol> symbols_;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

/// Appends a symbol's token, or those of its bytes.
void Tokenizer::append(std::string_view piece, const Symbol& symbol,
                       std::vector<std::int32_t>& tokens) const {
    if (symbol.token >= 0) return tokens.push_back(symbol.token);
    const std::string_view text = piece.substr(symbol.begin, symbol.size);
    if (append_bytes(text, tokens)) return;
    if (tokens.empty() || tokens.back() != unknown_) append_unknown(text, tokens);
}

bool Tokenizer::append_bytes(std::string_view text, std::vector<std::int32_t>& tokens) const {
    const auto token_of = [&](char c) { return of_byte_[static_cast<unsigned char>(c)]; };
    if (std::any_of(text.begin(), text.end(), [&](char c) { return token_of(c) < 0; }))
        return false;
    for (const char c : text) tokens.push_back(token_of(c));
    return true;
}

void Tokenizer::append_unknown(std::string_view text, std::vector<std::int32_t>& tokens) const {
    if (unknown_ >= 0) return tokens.push_back(unknown_);
    const auto lacking = std::find_if(text.begin(), text.end(), [&](char c) {
        return of_byte_[static_cast<unsigned char>(c)] < 0;
    });
    fail(ErrorKind::unsupported, "the tokenizer of '", source_, "' has no token for byte ",
         unsigned{static_cast<unsigned char>(*lacking)}, " of the text");
}

std::string Tokenizer::marked(std::string text, bool first) const {
    using Space = TokenizerTables::Space;
    const bool spaced = text.starts_with(' ') || (!byte_level_ && text.starts_with(space_mark));
    if (space_ == Space::each || (space_ == Space::each_without && !spaced) ||
        (space_ == Space::first_without && !spaced && first))
        text.insert(0, 1, ' ');
    return byte_level_ ? text : replaced(text, " ", space_mark);
}

void Tokenizer::encode_unigram(std::string_view text, bool first,
                               std::vector<std::int32_t>& tokens) const {
    for (const std::string& part : unigram_->parts_of(text)) {
        // A word that stands behind white space is not the first.
        const std::string whole = marked(part, first && text.starts_with(part));
        for (const std::string_view piece : splitter_.split(whole))
            for (const Unigram::Piece& found : unigram_->split(piece))
                if (found.token >= 0)
                    tokens.push_back(found.token);
                else if (!append_bytes(found.text, tokens))
                    append_unknown(found.text, tokens);
        first = false;
    }
}

void Tokenizer::encode_plain(std::string_view given, bool first,
                             std::vector<std::int32_t>& tokens) const {
    if (given.empty()) return;
    if (word_piece_) return word_piece_->encode(given, tokens);
    if (unigram_) return encode_unigram(given, first, tokens);
    const std::string text = marked(composed_ ? composed(given) : std::string(given), first);
    std::string name;
    for (const std::string_view piece : splitter_.split(text)) {
        if (splitter_.takes_whole_pieces()) {
            name.assign(byte_level_ ? "" : piece);
            for (const char c : piece)
                if (byte_level_) name += byte_names()[static_cast<unsigned char>(c)];
            if (const std::int32_t token = find(name); token >= 0) {
                tokens.push_back(token);
                continue;
            }
        }
        Merger(*this, piece).each([&](const Symbol& symbol) { append(piece, symbol, tokens); });
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
            const auto strip = strips_.find(first->token);
            std::string_view before = text.substr(done, first->at - done);
            if (strip != strips_.end() && strip->second.first)
                before.remove_suffix(space_at_end(before));
            encode_plain(before, done == 0, tokens);
            tokens.push_back(first->token);
            done = first->at + first->name.size();
            if (strip != strips_.end() && strip->second.second)
                done += space_at_begin(text.substr(done));
        }
        first->at = text.find(first->name, std::max(done, first->at + 1));
        if (first->at == std::string_view::npos) next.erase(first);
    }
    encode_plain(text.substr(done), done == 0, tokens);
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

}  // namespace dlprim::language
