// SPDX-License-Identifier: MIT
// Language models in folders as Hugging Face's: config.json, safetensors files, tokenizer.json.
#pragma once

#include "language/model_file.hpp"

#include <memory>
#include <string>

namespace dlprim::language {

/// Throws what open_model() throws.
std::unique_ptr<const ModelFile> open_hugging_face(const std::string& path);

/// How the folder of an encoder says that tokens become a text's embedding: modules.json and what
/// it names, as the package sentence-transformers writes them (hugging_face_pooling.cpp). The mean
/// over all tokens if the folder does not say. Throws Error(format), or Error(unsupported) for
/// another way, and for modules behind the pooling other than a normalisation.
Pooling read_pooling(const std::string& folder);

}  // namespace dlprim::language
