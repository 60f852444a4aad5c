// SPDX-License-Identifier: MIT
// The tables of a tokenizer written as tokenizer.json, which hugging_face_tokenizer.hpp reads.
#pragma once

#include "language/model_file.hpp"

#include <nlohmann/json_fwd.hpp>

namespace dlprim::language {

/// The whole file. Scores of tokens, as SentencePiece has them, become merges in the order of
/// scores. Throws Error(unsupported) for a way of splitting that is not known.
nlohmann::ordered_json tokenizer_json(const TokenizerTables& tables);

}  // namespace dlprim::language
