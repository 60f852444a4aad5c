// SPDX-License-Identifier: MIT
// Tokenizer: text to tokens by the tables of a model's file, by WordPiece (wordpiece.hpp), by
// Unigram (unigram.hpp) or by BPE (Sennrich et al. 2016). There symbols of a piece of text are
// merged to tokens, the earliest merge of the table first. They are bytes (Radford et al. 2019), or
// characters as SentencePiece has them (Kudo and Richardson 2018): spaces are a sign of their own,
// and bytes stand for a character that is no token. Without a table of merges two symbols merge
// where a token is the text of both, and the one with the highest score first.
#pragma once

#include "language/model_file.hpp"
#include "language/splitter.hpp"
#include "language/unigram.hpp"
#include "language/wordpiece.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dlprim::language {

class Tokenizer {
  public:
    /// Throws Error(unsupported) for another kind of tokenizer, and Error(format) for tables that
    /// do not fit each other or a vocabulary of this size; `source` names the file.
    Tokenizer(const TokenizerTables& tables, std::int64_t vocabulary, const std::string& source);

    /// The tokens of a text in UTF-8. Special tokens in it, such as <|im_start|>, are tokens if
    /// `special`, else text as any other. Throws Error(invalid_argument) for text that is not
    /// UTF-8, with the place.
    std::vector<std::int32_t> encode(std::string_view text, bool special = true) const;
    /// The bytes that a token stands for, which need not be whole characters; a special token's
    /// name.
    std::string bytes(std::int32_t token) const;

    /// Whether a text ends with the token.
    bool ends(std::int32_t token) const;
    /// The token with which texts begin, or -1.
    std::int32_t begin() const { return begin_; }
    /// The token behind each text that an encoder reads, or -1.
    std::int32_t separator() const { return separator_; }

  private:
    struct Merge {
        double rank;  ///< the lowest first
        std::int32_t token;
    };
    /// Looks up string_view in a table of strings.
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const {
            return std::hash<std::string_view>()(text);
        }
    };
    /// A part of a piece of text; -1 is no token.
    struct Symbol {
        std::size_t begin, size;
        std::int32_t token;
        std::size_t before, after;
    };
    class Merger;

    void add_tokens(const TokenizerTables& tables);
    void add_merges(const std::vector<std::string>& merges);
    std::int32_t find(std::string_view name) const;
    /// The text between special tokens; `first` if none is before it.
    void encode_plain(std::string_view text, bool first, std::vector<std::int32_t>& tokens) const;
    /// A part of it, with the space in front that it gets and spaces marked.
    std::string marked(std::string text, bool first) const;
    void encode_unigram(std::string_view text, bool first, std::vector<std::int32_t>& tokens) const;
    std::vector<Symbol> symbols_of(std::string_view piece) const;
    std::optional<Merge> merge_of(std::string_view piece, const Symbol& left,
                                  const Symbol& right) const;
    void append(std::string_view piece, const Symbol& symbol,
                std::vector<std::int32_t>& tokens) const;
    /// Appends the tokens of the text's bytes. False, and none, if one has no token.
    bool append_bytes(std::string_view text, std::vector<std::int32_t>& tokens) const;
    void append_unknown(std::string_view text, std::vector<std::int32_t>& tokens) const;

    std::string source_;
    bool byte_level_;
    std::optional<WordPiece> word_piece_;
    std::optional<Unigram> unigram_;
    Splitter splitter_;
    bool composed_;
    TokenizerTables::Space space_;
    std::vector<std::string> bytes_;  ///< of each token
    /// Of the names of plain tokens.
    std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> numbers_;
    std::unordered_map<std::uint64_t, Merge> merges_;  ///< by the two tokens
    std::vector<double> scores_;
    std::array<std::int32_t, 256> of_byte_{};                      ///< -1: there is none
    std::map<std::string, std::int32_t, std::greater<>> special_;  ///< longer before their prefixes
    std::map<std::int64_t, std::pair<bool, bool>> strips_;
    std::vector<std::int32_t> ends_;
    std::int32_t begin_ = -1, separator_ = -1, unknown_ = -1;
};

}  // namespace dlprim::language
