// SPDX-License-Identifier: MIT
// CharacterMap: the table by which SentencePiece (Kudo and Richardson 2018) brings text into a
// plain form before it looks for tokens, such as full-width letters to those of ASCII. Models bring
// it as bytes, "precompiled_charsmap": the size of a trie, the trie, in which an entry is the place
// of a replacement, and the replacements, each ended by a zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::language {

class CharacterMap {
  public:
    /// No bytes are a map that changes nothing. Throws Error(format) for other bytes than such a
    /// table's, and Error(unsupported) where the library was built without ICU, which cuts text
    /// into characters as people see them; `source` names the file.
    CharacterMap(std::string_view bytes, const std::string& source);

    /// The plain form of a text in UTF-8. A character as people see it, of several code points, is
    /// replaced as a whole where it is short and in the table, else code point by code point. So do
    /// Hugging Face's tokenizers; SentencePiece takes the longest entry at each place.
    std::string plain(std::string_view text) const;

  private:
    std::optional<std::string_view> replacement(std::string_view characters) const;
    void append_plain(std::string_view character, std::string& to) const;

    std::vector<std::uint32_t> trie_;
    std::string replacements_;
};

}  // namespace dlprim::language
