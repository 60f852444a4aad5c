// SPDX-License-Identifier: MIT
// Quotients and remainders of integers of 32 and 64 bits on a device, whose programs divide in
// float.
#pragma once

#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

/// a / b, rounded towards zero, and the remainder: that of C's %, or with the sign of b. Exact,
/// unless b is 0 or the smallest int64, for which the result is any number.
Ref integer_quotient(Builder& build, Ref a, Ref b);
Ref integer_remainder(Builder& build, Ref a, Ref b, bool like_c);

}  // namespace dlprim::onnx
