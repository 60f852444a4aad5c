// SPDX-License-Identifier: MIT
// Concat's options and geometry: the place of each input in the output, in the layouts that allow
// concatenation along the dimension.
#pragma once

#include "engine/copy_engines.hpp"

#include <span>
#include <vector>

namespace dlprim::concat {

/// dim, counted from the front. Throws Error(invalid_argument) if a shape of `rank` dimensions
/// lacks it.
int dimension(const Attrs& attrs, int rank);

/// The layouts in which the problem can be computed; all operands have the same layout. Along
/// channels, a blocked layout requires that every input except the last fills its blocks.
std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem);

/// The dimension's place in memory, in the layout of the output.
int physical_dimension(const Problem& problem);

/// One copy per input, to its place in the output.
std::vector<StridedCopy> copies(const Problem& problem);

inline constexpr Movement<StridedCopy> movement{"Concat", "concat.copy", "concat.host", copies,
                                                layouts};

}  // namespace dlprim::concat
