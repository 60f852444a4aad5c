// SPDX-License-Identifier: MIT
// ONNX's element types by their numbers, without protobuf: attributes name types by number, too.
#pragma once

#include <dlprim/dtype.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace dlprim::onnx {

/// The number of strings, which no DType stands for.
constexpr std::int64_t string_type = 8;

/// Our type for the number of one of ONNX's; nothing if the library does not have it.
std::optional<DType> dtype_of(std::int64_t onnx_type);
/// What messages call the type.
std::string type_name(std::int64_t onnx_type);

}  // namespace dlprim::onnx
