// SPDX-License-Identifier: MIT
// Models of the tokenizer SentencePiece, as files tokenizer.model have them.
#pragma once

#include "language/model_file.hpp"

#include <string>
#include <string_view>

namespace dlprim::language {

/// The tables of a model, a message of protobuf, which `source` names in messages. Throws
/// Error(format) for bytes that are none, and Error(unsupported) for a model that is not BPE or
/// changes text in other ways than by marking spaces.
TokenizerTables parse_sentencepiece(std::string_view bytes, const std::string& source);

}  // namespace dlprim::language
