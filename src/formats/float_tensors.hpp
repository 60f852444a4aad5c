// SPDX-License-Identifier: MIT
// FloatTensors: the tensors of a file that is written, each made when its turn comes, so that one
// at a time is in memory. GGUF and safetensors share it.
#pragma once

#include "base/new_file.hpp"

#include <dlprim/dtype.hpp>
#include <dlprim/shape.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dlprim {

struct FloatTensors {
    struct Tensor {
        std::string name;
        Shape shape;
        bool half = false;  ///< whether it is written as F16; else as F32

        std::size_t bytes() const {
            return static_cast<std::size_t>(shape.numel()) * (half ? 2 : sizeof(float));
        }
    };
    std::vector<Tensor> tensors;
    /// Writes a tensor's values, one at a time; there is room for shape.numel() of them.
    std::function<void(const Tensor& tensor, float* values)> read;

    /// Appends all data; each tensor's is filled up with zeros to a multiple of `alignment` bytes.
    void append_to(NewFile& file, std::size_t alignment = 1) const {
        std::vector<float> values;
        std::vector<std::uint16_t> halves;
        for (const Tensor& tensor : tensors) {
            values.resize(static_cast<std::size_t>(tensor.shape.numel()));
            read(tensor, values.data());
            const auto* bytes = reinterpret_cast<const char*>(values.data());
            if (tensor.half) {
                halves.resize(values.size());
                std::transform(values.begin(), values.end(), halves.begin(), float_to_half);
                bytes = reinterpret_cast<const char*>(halves.data());
            }
            file.append({bytes, tensor.bytes()});
            file.append(std::string((alignment - tensor.bytes() % alignment) % alignment, '\0'));
        }
    }
};

}  // namespace dlprim
