// SPDX-License-Identifier: MIT
// TextRows: texts to train a language model on, as a data set of rows of tokens.
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

#include "language/network.hpp"
#include "train/dataset.hpp"

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

/// The label of each place of a row is the token that follows, if it counts.
class TextRows : public Dataset {
  public:
    /// Reads a file. Rows have at most `most` tokens: longer texts are cut. With `pack` texts
    /// follow each other in rows of `most` tokens, without regard to where one ends; nothing: those
    /// of plain files do. Throws Error(not_found), Error(io), and Error(format), which names the
    /// line, for what is wrong in it and for a file without texts.
    TextRows(const LanguageModel& model, std::string path, std::int64_t most,
             std::optional<bool> pack);

    std::int64_t longest() const;
    /// Fills all rows up to a number of places, to be called before they are read.
    void set_length(std::int64_t length) { length_ = length; }

    std::int64_t size() const override { return std::ssize(rows_); }
    bool has_pictures() const override { return false; }
    Shape input_shape() const override { return {1, 1, length_}; }
    TargetKind target_kind() const override { return TargetKind::mask; }
    const std::vector<std::string>& classes() const override { return no_classes_; }
    std::int32_t label(std::int64_t) const override { return no_label; }
    Example read(std::int64_t index, const ChoosePart& choose) const override;
    std::string name(std::int64_t index) const override { return cat(path_, ", row ", index + 1); }
    std::string source() const override { return cat("'", path_, "'"); }
    /// How many rows and tokens there are, and what became of others.
    std::vector<std::string> remarks() const override;

  private:
    const std::string path_;
    const std::int64_t most_;
    const std::vector<std::string> no_classes_;
    std::vector<TextRow> rows_;
    std::int64_t length_ = 0;
    std::int64_t cut_ = 0;   ///< texts that were longer than a row
    std::int64_t left_ = 0;  ///< texts of which no token would have counted
};

}  // namespace dlprim::language
