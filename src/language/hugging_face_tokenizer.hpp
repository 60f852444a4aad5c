// SPDX-License-Identifier: MIT
// What the folder of a Hugging Face model says about text: tokenizer.json, tokenizer_config.json,
// and the ends of texts in generation_config.json or config.json.
#pragma once

#include "formats/json_tree.hpp"
#include "language/model_file.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dlprim::language {

/// The tables of a tokenizer.json, which `source` names in messages, filled up to `vocabulary`
/// tokens. Throws Error(format), or Error(unsupported), which names what is not supported.
TokenizerTables parse_tokenizer(std::string_view text, const std::string& source,
                                std::int64_t vocabulary);

/// The tables of WordPiece in a vocab.txt, a token in each line. `how` is tokenizer_config.json.
TokenizerTables parse_vocabulary(std::string_view lines, const JsonView& how,
                                 std::int64_t vocabulary);

/// The same of a model's folder, with the tokens that end texts. `config` is config.json.
TokenizerTables read_tokenizer(const std::string& folder, const JsonView& config,
                               std::int64_t vocabulary);

std::optional<std::string> read_chat_template(const std::string& folder);

}  // namespace dlprim::language
