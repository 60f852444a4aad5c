// SPDX-License-Identifier: MIT
// ONNX's element types by their numbers, without protobuf: attributes name types by number, too.
#pragma once

#include <dlprim/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dlprim::onnx {

/// The number of strings, which no DType stands for.
constexpr std::int64_t string_type = 8;

/// Our type for the number of one of ONNX's; nothing if the library does not have it.
std::optional<DType> dtype_of(std::int64_t onnx_type);
/// What messages call the type.
std::string type_name(std::int64_t onnx_type);

/// Bits of an element in a file. Those of fewer than 8 bits share bytes, the first in the low bits.
int stored_bits(DType dtype);
/// Bytes of so many elements in a file.
std::size_t stored_bytes(std::int64_t elements, DType dtype);
/// Elements of fewer than 8 bits, a byte each.
std::vector<std::byte> unpacked(const std::vector<std::byte>& packed, std::int64_t elements,
                                DType dtype);

}  // namespace dlprim::onnx
