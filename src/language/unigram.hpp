// SPDX-License-Identifier: MIT
// Unigram (Kudo 2018): every token has a log-probability, and a text becomes the tokens whose sum
// is the highest, which dynamic programming finds (Viterbi 1967). A character that no token has
// costs more than any token.
#pragma once

#include "language/character_map.hpp"
#include "language/model_file.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim::language {

class Unigram {
  public:
    /// Throws Error(format) for scores that are not numbers or not as many as the tokens, and what
    /// CharacterMap throws; `source` names the file.
    Unigram(const TokenizerTables& tables, const std::string& source);

    /// The parts of a text in its plain form: its words, if white space cuts it, else itself unless
    /// it is empty.
    std::vector<std::string> parts_of(std::string_view text) const;

    /// A token and its text. Characters beside each other that no token has are one piece with -1.
    struct Piece {
        std::string_view text;
        std::int32_t token;
    };
    std::vector<Piece> split(std::string_view text) const;

  private:
    struct Node;
    void offer_tokens(std::string_view text, std::size_t at, std::vector<Node>& nodes) const;

    UnigramRules rules_;
    CharacterMap map_;
    std::vector<std::pair<std::string, std::int32_t>> tokens_;  ///< in the order of their names
    std::vector<double> scores_;
    double unknown_score_ = 0;
};

}  // namespace dlprim::language
