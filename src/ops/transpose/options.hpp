// SPDX-License-Identifier: MIT
// Transpose's options: dims, a permutation (output dimension i is input dimension dims[i]), or dim0
// and dim1, two dimensions that are exchanged.
#pragma once

#include "engine/copy_engines.hpp"

namespace dlprim::transpose {

/// The permutation with dimensions counted from the front. Throws Error(invalid_argument) if it is
/// not a permutation.
Ints permutation(const Attrs& attrs, const Shape& input);
Shape output_shape(const Shape& input, const Ints& permutation);
std::vector<StridedCopy> copies(const Problem& problem);

inline constexpr Movement<StridedCopy> movement{"Transpose", "transpose.copy", "transpose.host",
                                                copies};

}  // namespace dlprim::transpose
