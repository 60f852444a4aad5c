// SPDX-License-Identifier: MIT
// The types of OpenCL C for elements of tensors.
#pragma once

#include <dlprim/dtype.hpp>

namespace dlprim {

/// The type in which memory of a kernel holds an element: "float", "half", "ushort" for bfloat16,
/// "uchar" for bool and narrow types.
const char* kernel_type(DType dtype) noexcept;

}  // namespace dlprim
