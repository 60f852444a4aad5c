// SPDX-License-Identifier: MIT
// Tokenizer: byte-level BPE (Sennrich et al. 2016; Radford et al. 2019) by the tables of a model's
// file. Bytes of a piece of text are merged to tokens, the earliest merge of the table first.
#pragma once

#include "language/model_file.hpp"
#include "language/splitter.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
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

  private:
    struct Merge {
        std::int32_t rank, token;
    };
    void add_merges(const std::vector<std::string>& merges);
    void encode_plain(std::string_view text, std::vector<std::int32_t>& tokens) const;
    void merge(std::string_view piece, std::vector<std::int32_t>& tokens) const;

    std::string source_;
    Splitter splitter_;
    std::vector<std::string> bytes_;                               ///< of each token
    std::unordered_map<std::string, std::int32_t> numbers_;        ///< of the names of plain tokens
    std::unordered_map<std::uint64_t, Merge> merges_;              ///< by the two tokens
    std::array<std::int32_t, 256> of_byte_{};                      ///< -1: there is none
    std::map<std::string, std::int32_t, std::greater<>> special_;  ///< longer before their prefixes
    std::vector<std::int32_t> ends_;
    std::int32_t begin_ = -1;
};

/// How many bytes at the end of the text begin a character of UTF-8 without ending it.
std::size_t unfinished(std::string_view text);

}  // namespace dlprim::language
