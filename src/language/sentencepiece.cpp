// SPDX-License-Identifier: MIT
// Parsing of SentencePiece's models: the few fields of protobuf's encoding that matter.
#include "language/sentencepiece.hpp"

#include "base/text.hpp"

#include <cstring>

namespace dlprim::language {

namespace {

/// A message's fields, one after the other.
class Fields {
  public:
    Fields(std::string_view bytes, const std::string& source) : left_(bytes), source_(source) {}

    /// Goes on to the next field. False at the end.
    bool next() {
        if (left_.empty()) return false;
        const std::uint64_t tag = varint();
        number = tag >> 3;
        switch (tag & 7) {
            case 0:
                value = varint();
                return true;
            case 1:
                text = take(8);
                return true;
            case 2:
                text = take(varint());
                return true;
            case 5:
                text = take(4);
                return true;
            default:
                damaged();
        }
    }
    /// Of a field of four bytes.
    float real() const {
        float made = 0;
        if (text.size() != sizeof made) damaged();
        std::memcpy(&made, text.data(), sizeof made);
        return made;
    }

    std::uint64_t number = 0, value = 0;  ///< value of a field that is an integer
    std::string_view text;                ///< of a field that is not

  private:
    [[noreturn]] void damaged() const {
        fail(ErrorKind::format, "'", source_, "' is no model of SentencePiece, or damaged");
    }
    std::string_view take(std::uint64_t size) {
        if (size > left_.size()) damaged();
        const std::string_view part = left_.substr(0, static_cast<std::size_t>(size));
        left_.remove_prefix(part.size());
        return part;
    }
    std::uint64_t varint() {
        std::uint64_t made = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<unsigned char>(take(1)[0]);
            made |= std::uint64_t{byte & 127u} << shift;
            if (byte < 128) return made;
        }
        damaged();
    }

    std::string_view left_;
    const std::string& source_;
};

void read_piece(std::string_view bytes, const std::string& source, TokenizerTables& tables) {
    tables.tokens.emplace_back();
    tables.scores.push_back(0);
    tables.kinds.push_back(token_kind::plain);
    for (Fields field(bytes, source); field.next();) {
        if (field.number == 1) tables.tokens.back() = field.text;
        if (field.number == 2) tables.scores.back() = field.real();
        if (field.number == 3) tables.kinds.back() = static_cast<std::int64_t>(field.value);
    }
}

/// Which of the kinds of TokenizerTables it is.
std::string read_training(std::string_view bytes, const std::string& source) {
    std::uint64_t kind = 1;
    bool suffix = false;
    for (Fields field(bytes, source); field.next();) {
        if (field.number == 3) kind = field.value;
        if (field.number == 24) suffix = field.value != 0;
    }
    constexpr std::uint64_t unigram = 1, bpe = 2;
    if ((kind != unigram && kind != bpe) || suffix)
        fail(ErrorKind::unsupported, "'", source,
             "' is a model of SentencePiece that is neither Unigram nor BPE, or has spaces at the "
             "end of words, which is not supported");
    return kind == unigram ? "t5" : "llama";
}

void read_normalizing(std::string_view bytes, const std::string& source, TokenizerTables& tables) {
    bool prefix = true, shortened = true, marked = true;
    for (Fields field(bytes, source); field.next();) {
        if (field.number == 2) tables.unigram.characters = field.text;
        if (field.number == 3) prefix = field.value != 0;
        if (field.number == 4) shortened = field.value != 0;
        if (field.number == 5) marked = field.value != 0;
    }
    const bool is_unigram = tables.model == "t5";
    if ((!is_unigram && (!tables.unigram.characters.empty() || shortened)) || !marked)
        fail(ErrorKind::unsupported, "'", source,
             "' is a model of SentencePiece's BPE that replaces characters or removes spaces, or "
             "does not mark spaces, which is not supported");
    UnigramRules& rules = tables.unigram;
    rules.as_sentencepiece = is_unigram;
    rules.strip_left = rules.strip_right = rules.join_spaces = is_unigram && shortened;
    tables.space = prefix ? TokenizerTables::Space::each : TokenizerTables::Space::none;
}

}  // namespace

TokenizerTables parse_sentencepiece(std::string_view bytes, const std::string& source) {
    TokenizerTables tables;
    std::string_view training, normalizing;
    for (Fields field(bytes, source); field.next();) {
        if (field.number == 1) read_piece(field.text, source, tables);
        if (field.number == 2) training = field.text;
        if (field.number == 3) normalizing = field.text;
    }
    if (tables.tokens.empty())
        fail(ErrorKind::format, "'", source, "' is no model of SentencePiece: it has no tokens");
    tables.model = read_training(training, source);
    read_normalizing(normalizing, source, tables);
    return tables;
}

}  // namespace dlprim::language
