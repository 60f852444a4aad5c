// SPDX-License-Identifier: MIT
// Writing of GGUF files, version 3 (formats/gguf/file.hpp has the format).
#pragma once

#include "formats/gguf/file.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dlprim {

struct GgufContents {
    /// Integers are written in 32 bits, numbers as float.
    std::map<std::string, GgufValue> metadata;
    struct Tensor {
        std::string name;
        Shape shape;
        bool half = false;  ///< whether it is written as F16; else as F32
    };
    std::vector<Tensor> tensors;
    /// Writes a tensor's values, one at a time; there is room for shape.numel() of them.
    std::function<void(const Tensor& tensor, float* values)> read;
};

/// Writes the file whole or not at all. Throws Error(io), Error(invalid_argument) for an integer
/// that does not fit, and what `read` throws.
void write_gguf(const std::string& path, const GgufContents& contents);

}  // namespace dlprim
