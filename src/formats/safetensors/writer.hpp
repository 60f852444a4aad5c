// SPDX-License-Identifier: MIT
// Writing of files of the format safetensors (formats/safetensors/file.hpp has it).
#pragma once

#include <dlprim/shape.hpp>

#include <functional>
#include <string>
#include <vector>

namespace dlprim {

struct SafetensorsContents {
    struct Tensor {
        std::string name;
        Shape shape;
        bool half = false;  ///< whether it is written as F16; else as F32
    };
    std::vector<Tensor> tensors;
    /// Writes a tensor's values, one at a time; there is room for shape.numel() of them.
    std::function<void(const Tensor& tensor, float* values)> read;
};

/// Writes the file whole or not at all. Throws Error(io), and what `read` throws.
void write_safetensors(const std::string& path, const SafetensorsContents& contents);

}  // namespace dlprim
