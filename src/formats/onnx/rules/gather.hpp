// SPDX-License-Identifier: MIT
// Gathering by indices that the device computes.
#pragma once

#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

/// The elements of `data` at the indices along an axis, as ONNX's Gather has them.
Ref gather_computed(Call& call, Ref data, Ref indices, int axis);

}  // namespace dlprim::onnx
