// SPDX-License-Identifier: MIT
// CharacterMap: the table by which SentencePiece (Kudo and Richardson 2018) brings text into a
// plain form before it looks for tokens, such as full-width letters to those of ASCII. Models bring
// it as bytes, "precompiled_charsmap": the size of a trie, the trie, in which an entry is the place
// of a replacement, and the replacements, each ended by a zero.
#pragma once

#include <cstdint>
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

    /// The plain form of a text in UTF-8, as SentencePiece makes it: at each place the longest
    /// entry is replaced. Throws Error(format) if a text becomes far too long, which damaged tables
    /// do.
    std::string plain_by_longest(std::string_view text) const;
    /// The same as Hugging Face's tokenizers make it: a character as people see it, of several code
    /// points, is replaced as a whole where it is short and in the table, else code point by code
    /// point.
    std::string plain_by_characters(std::string_view text) const;

  private:
    /// An entry of the trie: how many bytes it has, and what they become.
    struct Entry {
        std::size_t size = 0;  ///< 0: there is none
        std::string_view becomes;
    };
    /// The entry that the text begins with: the shortest, or the longest.
    Entry entry(std::string_view text, bool longest) const;
    void append_plain(std::string_view character, std::string& to) const;

    std::vector<std::uint32_t> trie_;
    std::string replacements_;
};

}  // namespace dlprim::language
