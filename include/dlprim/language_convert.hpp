// SPDX-License-Identifier: MIT
// Language models as GGUF files.
//
// Any thread may call this function, which returns when all is written: the whole file or none. A
// model is a path as LanguageModel's constructor takes it. It throws what that throws, and
// Error(io).
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

}  // namespace dlprim
