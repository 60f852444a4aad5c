// SPDX-License-Identifier: MIT
// Transpose's options: dims, a permutation (output dimension i is input dimension dims[i]), or the
// two dimensions dim0 and dim1 that change places.
#pragma once

#include "engine/strided_copy.hpp"

namespace dlprim::transpose {

/// The permutation, from the front. Throws Error(invalid_argument) where it is none.
Ints permutation(const Attrs& attrs, const Shape& input);
Shape output_shape(const Shape& input, const Ints& permutation);
StridedCopy copy(const Problem& problem);

}  // namespace dlprim::transpose
