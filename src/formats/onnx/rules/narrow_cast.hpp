// SPDX-License-Identifier: MIT
// Casts to narrow types (is_narrow()), by ONNX's rules for what is out of range.
#pragma once

#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

/// The call's first input as `dtype`. `saturate`: what is too large becomes the largest number of a
/// float of 8 bits. `rounding` to powers of two (float8e8m0): "up", "down" or "nearest".
Ref cast_to_narrow(Call& call, DType dtype, bool saturate, const std::string& rounding);
/// Of any value: numbers that are too large become the largest one of `dtype`.
Ref saturated(Builder& build, Ref value, DType dtype);

}  // namespace dlprim::onnx
