// SPDX-License-Identifier: MIT
// Numbers as OpenCL C has them.
#pragma once

#include <string>

namespace dlprim {

/// The float nearest to `value`, in the fewest digits that read back as it: "0.01f", "-2.0f",
/// "NAN", "INFINITY". A negative one is not in parentheses.
std::string float_literal(double value);

}  // namespace dlprim
