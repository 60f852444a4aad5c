// SPDX-License-Identifier: MIT
// TextRows: texts to train a language model on, as rows of tokens.
//
// A file that ends with .jsonl has a JSON object in each line that is not empty:
//
//   {"text": "..."}                                  all of its tokens count in the loss
//   {"prompt": "...", "completion": "..."}           those of the completion count
//   {"messages": [{"role": "user", "content": "..."}, ...]}    those of the assistant's messages
//                                                    count, as the model's template writes them
//
// Any other file is one text. A text begins and ends with the model's tokens for that.
#pragma once

#include <dlprim/language.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dlprim::language {

struct TextRow {
    std::vector<std::int32_t> tokens;
    std::vector<bool> counts;  ///< of each token, whether it counts in the loss
};

struct TextRows {
    std::vector<TextRow> rows;
    std::int64_t cut = 0;   ///< texts that were longer than a row
    std::int64_t left = 0;  ///< texts of which no token would have counted
    std::size_t longest() const;
    /// How many tokens have a label, over all rows.
    std::int64_t labels() const;
};

/// Reads a file. Rows have at most `length` tokens: longer texts are cut. With `pack` texts follow
/// each other in rows of `length` tokens, without regard to where one ends; nothing: those of plain
/// files do. Throws Error(not_found), Error(io), and Error(format), which names the line, for what
/// is wrong in it and for a file without texts.
TextRows read_text_rows(const LanguageModel& model, const std::string& path, std::int64_t length,
                        std::optional<bool> pack);

}  // namespace dlprim::language
