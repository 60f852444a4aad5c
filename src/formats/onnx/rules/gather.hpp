// SPDX-License-Identifier: MIT
// Rows of a dimension, for rules of several families.
#pragma once

#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

/// The rows of dimension `axis` at indices, computed or known; their dimensions
/// take the axis' place.
Ref gather_computed(Call& call, Ref data, Ref indices, int axis);

}  // namespace dlprim::onnx
