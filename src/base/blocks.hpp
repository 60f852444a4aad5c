// SPDX-License-Identifier: MIT
// Weights as GGUF files store them: plain floats, and blocks of small integers that share a scale.
// Values are those of PyPI's `gguf` package, bit for bit. A product or a table whose option
// `blocks` names a type has its weight in a tensor of bytes, [rows, bytes of a row]. Kernels read
// blocks by kernels/matrix/blocks.clh, the host's engines by engine/host_blocks.hpp.
#pragma once

#include <dlprim/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// How a tensor's elements are stored. A row of a tensor is a whole number of blocks.
struct GgufType {
    std::uint32_t code = 0;                                           ///< as files have it
    std::string_view name;                                            ///< in messages
    std::string_view option;                                          ///< in networks and HDF5
    std::int64_t elements = 1;                                        ///< of a block
    std::size_t bytes = 0;                                            ///< of a block
    void (*unpack)(const std::byte* block, float* values) = nullptr;  ///< one block
    /// Halves by which the block's integers are scaled or moved, from this byte on.
    std::size_t scale_at = 0, scales = 0;
};

/// The types that can be unpacked.
std::span<const GgufType> gguf_types();
/// The type of that code, or nullptr if it cannot be unpacked.
const GgufType* find_gguf_type(std::uint32_t code);
/// The type whose name in networks this is, of those in which a product's weights may be stored:
/// all but F32. Throws Error(invalid_argument), which lists them.
const GgufType& block_type(std::string_view option);
/// The blocks of a product's weights: 32 of F16 and BF16 together are one, too.
struct BlockSize {
    std::int64_t weights = 0, bytes = 0;
};
BlockSize block_size(const GgufType& type);
/// The bytes of rows of weights: [rows, bytes of a row]. Throws Error(invalid_argument) if a row is
/// no whole number of blocks.
Shape block_shape(const GgufType& type, std::int64_t rows, std::int64_t weights);
/// The weights of a row of so many bytes. Throws likewise.
std::int64_t block_weights(const GgufType& type, std::int64_t row_bytes);
/// The weights of whole blocks.
std::vector<float> unpack_blocks(const GgufType& type, std::span<const std::byte> blocks);
/// The name of any type that GGUF knows, or its code as a number.
std::string gguf_type_name(std::uint32_t code);

}  // namespace dlprim
