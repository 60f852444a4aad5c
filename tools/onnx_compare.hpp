// SPDX-License-Identifier: MIT
// Compares what a model gave with what it should give, as ONNX's own runner of tests does.
#pragma once

#include <dlprim/onnx_value.hpp>

#include <string>

namespace dlprim::tools {

/// Where the values differ, as a sentence; empty where they do not. Kinds, element types and shapes
/// must be the same. Numbers a and b, of which b is expected, agree within 1e-7 + 1e-3 * |b|, as
/// in numpy.allclose, and within 2^-6 of |b| in bfloat16. NaN agrees with NaN.
std::string difference(const ONNXValue& given, const ONNXValue& expected);

}  // namespace dlprim::tools
