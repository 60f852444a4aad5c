// SPDX-License-Identifier: MIT
// Activations by name, for operators that compute one behind their own result.
#pragma once

#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

/// `value` after the activation operator of this name, with that operator's attributes. Throws
/// Error(unsupported) for a name that is no activation.
Ref activated(Call& call, Ref value, const std::string& name, Attributes attributes = {});

}  // namespace dlprim::onnx
