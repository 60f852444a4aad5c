// SPDX-License-Identifier: MIT
// Writing of GGUF files, version 3 (formats/gguf/file.hpp has the format).
#pragma once

#include "formats/float_tensors.hpp"
#include "formats/gguf/file.hpp"

#include <map>
#include <string>

namespace dlprim {

struct GgufContents : FloatTensors {
    /// Integers are written in 32 bits, numbers as float.
    std::map<std::string, GgufValue> metadata;
};

/// Writes the file whole or not at all. Throws Error(io), Error(invalid_argument) for an integer
/// that does not fit, and what `read` throws.
void write_gguf(const std::string& path, const GgufContents& contents);

}  // namespace dlprim
