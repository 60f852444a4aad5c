// SPDX-License-Identifier: MIT
// Characters of UTF-8, by which tokenizers read text.
#pragma once

#include <cstddef>
#include <string_view>

namespace dlprim::language {

/// The length, in bytes, of the character that the text begins with; 0 if it begins with none.
std::size_t character_size(std::string_view text);
/// The same, and 1 if it begins with none: what a loop over damaged text goes on by.
std::size_t character_step(std::string_view text);
/// How many bytes at the end of the text begin a character without ending it.
std::size_t unfinished(std::string_view text);
/// Throws Error(invalid_argument), with the place, for a text that is not UTF-8.
void require_utf8(std::string_view text);

/// The length, in bytes, of the white space (Unicode's) that the text begins with, and ends with.
std::size_t space_at_begin(std::string_view text);
std::size_t space_at_end(std::string_view text);

}  // namespace dlprim::language
