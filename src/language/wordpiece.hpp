// SPDX-License-Identifier: MIT
// WordPiece (Schuster and Nakajima 2012; Devlin et al. 2019): text is brought into a plain form and
// cut into words and signs, and a word is the longest tokens that it begins with, one after the
// other. A word that is none is one unknown token. Unicode's properties come from ICU; a library
// that was built without it cannot cut.
#pragma once

#include "language/model_file.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dlprim::language {

class WordPiece {
  public:
    /// Tokens as GGUF has them: those that begin words have the sign for a space in front. Throws
    /// Error(unsupported) where the library was built without ICU, and Error(format) if `unknown`
    /// is no token; `source` names the file.
    WordPiece(const TokenizerTables& tables, const std::string& source);

    /// Appends the tokens of a text in UTF-8, without special ones.
    void encode(std::string_view text, std::vector<std::int32_t>& tokens) const;

  private:
    void encode_word(const std::string& word, std::vector<std::int32_t>& tokens) const;

    WordPieceRules rules_;
    std::unordered_map<std::string, std::int32_t> numbers_;
    std::size_t longest_ = 0;  ///< token, in bytes
    std::int32_t unknown_;
};

/// A name of Hugging Face's as GGUF has it: "word" gets the sign for a space, "##piece" loses its
/// mark, and names in brackets stay.
std::string word_piece_name(std::string_view name, std::string_view mark);

/// Whether a token other than those in brackets has a capital letter of ASCII.
bool has_capitals(const TokenizerTables& tables);

/// The words and signs of a text, in its plain form.
std::vector<std::string> words_of(std::string_view text, const WordPieceRules& rules);

}  // namespace dlprim::language
