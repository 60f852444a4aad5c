// SPDX-License-Identifier: MIT
// Numbers as literals of OpenCL C.
#pragma once

#include <string>

namespace dlprim {

/// The float nearest to `value`, with the fewest digits that read back as the same float: "0.01f",
/// "-2.0f", "NAN", "INFINITY". Negative numbers have no parentheses.
std::string float_literal(double value);

}  // namespace dlprim
