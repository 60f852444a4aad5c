// SPDX-License-Identifier: MIT
// Reshape's options: dims has one entry per output dimension. 0 keeps the input's size, and one
// entry may be -1, which is deduced.
#pragma once

#include "base/attrs.hpp"

#include <dlprim/shape.hpp>

namespace dlprim::reshape {

/// The output's shape. Throws Error(invalid_argument) if the number of elements does not fit.
Shape output_shape(const Attrs& attrs, const Shape& input);

}  // namespace dlprim::reshape
