// SPDX-License-Identifier: MIT
// Language models in folders as Hugging Face's: config.json, safetensors files, tokenizer.json.
#pragma once

#include "language/model_file.hpp"

#include <memory>
#include <string>

namespace dlprim::language {

/// Throws what open_model() throws.
std::unique_ptr<const ModelFile> open_hugging_face(const std::string& path);

}  // namespace dlprim::language
