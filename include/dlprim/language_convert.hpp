// SPDX-License-Identifier: MIT
// Language models as GGUF files and as folders of Hugging Face's.
//
// Any thread may call these functions, which return when all is written: the whole file or folder,
// or none. A model is a path as LanguageModel's constructor takes it. They throw what that throws,
// and Error(io).
#pragma once

#include <dlprim/namespace.hpp>

#include <string>

namespace dlprim {

/// Writes the model as one GGUF file, with weights as F32, or as F16 if `half`; those of fewer than
/// two dimensions stay F32. Throws Error(unsupported) for what GGUF cannot say, such as a tokenizer
/// whose way of splitting has no name there. With the folder of an `adapter` of the model
/// (LanguageModelOptions::adapter), weights have it added.
void convert_to_gguf(const std::string& model, const std::string& path, bool half = false,
                     const std::string& adapter = {});

/// Writes the model as a folder with config.json, model.safetensors and the tokenizer's files, as
/// the package `transformers` reads them. It must not exist, or be empty. Weights are those that
/// the library reads; half and adapter are as above. Of a model that is a folder, the other files
/// are taken along. Of a GGUF file they are made; throws Error(unsupported) for what its file says
/// and theirs cannot.
void convert_to_hugging_face(const std::string& model, const std::string& folder, bool half = false,
                             const std::string& adapter = {});

}  // namespace dlprim
