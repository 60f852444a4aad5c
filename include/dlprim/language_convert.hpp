// SPDX-License-Identifier: MIT
// Language models in other files: as a network and its weights, and as GGUF.
//
// Any thread may call these functions, which return when all is written: whole files or none. A
// model is a path as LanguageModel's constructor takes it, and they throw what that throws, and
// Error(io).
#pragma once

#include <dlprim/namespace.hpp>

#include <cstdint>
#include <string>

namespace dlprim {

/// Sizes of the network that reads some tokens of a text.
struct LanguageStep {
    std::int64_t tokens = 1;        ///< how many are read at a time
    std::int64_t remembered = 256;  ///< how many that were read before can be remembered
};

/// Writes the network of a step as JSON, and its weights, float32, as HDF5.
/// src/language/network.hpp says what its inputs and outputs are. Throws Error(invalid_argument)
/// for sizes below 1 or above the model's context.
void convert_language_model(const std::string& model, const std::string& net_path,
                            const std::string& weights_path, const LanguageStep& step = {});

/// Writes the model as one GGUF file, with weights as F32, or as F16 if `half`; those of fewer than
/// two dimensions stay F32. Throws Error(unsupported) for what GGUF cannot say, such as a tokenizer
/// whose way of splitting has no name there.
void convert_to_gguf(const std::string& model, const std::string& path, bool half = false);

}  // namespace dlprim
