// SPDX-License-Identifier: MIT
// Reshape's options: dims, one an output dimension; 0 keeps the input's, one -1 is deduced.
#pragma once

#include "base/attrs.hpp"

#include <dlprim/shape.hpp>

namespace dlprim::reshape {

/// The output's shape. Throws Error(invalid_argument) where the elements do not fit it.
Shape output_shape(const Attrs& attrs, const Shape& input);

}  // namespace dlprim::reshape
