// SPDX-License-Identifier: MIT
// Numbers as integers with a scale and a zero point: x = (q - zero_point) * scale.
#pragma once

#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

/// The smallest and largest value of an integer type of 2, 4, 8 or 16 bits. Throws
/// Error(unsupported) for another one.
std::pair<double, double> quantized_range(const Call& call, DType dtype);

}  // namespace dlprim::onnx
