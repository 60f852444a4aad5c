// SPDX-License-Identifier: MIT
// Elements of tensors in GGUF files: plain floats, and blocks of small integers that share a scale.
// Values are those of PyPI's `gguf` package, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dlprim {

/// How a tensor's elements are stored. A row of a tensor is a whole number of blocks.
struct GgufType {
    std::uint32_t code = 0;                                           ///< as files have it
    std::string_view name;                                            ///< in messages
    std::int64_t elements = 1;                                        ///< of a block
    std::size_t bytes = 0;                                            ///< of a block
    void (*unpack)(const std::byte* block, float* values) = nullptr;  ///< one block
};

/// The types that can be unpacked.
std::span<const GgufType> gguf_types();
/// The type of that code, or nullptr if it cannot be unpacked.
const GgufType* find_gguf_type(std::uint32_t code);
/// The name of any type that GGUF knows, or its code as a number.
std::string gguf_type_name(std::uint32_t code);

}  // namespace dlprim
