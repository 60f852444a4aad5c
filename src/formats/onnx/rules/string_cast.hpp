// SPDX-License-Identifier: MIT
// Numbers as strings and back, on the host.
#pragma once

#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

/// Input 0, numbers that are or become known, as strings: integers in full, floats by the fewest
/// digits that read back as the same number, "INF", "-INF" and "NaN".
Ref cast_to_strings(Call& call);
/// Input 0, strings, as numbers. Throws Error(invalid_argument) for a text that is none.
Ref cast_from_strings(Call& call, DType dtype);

}  // namespace dlprim::onnx
