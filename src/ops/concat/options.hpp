// SPDX-License-Identifier: MIT
// Concat's options and geometry: where each input lies in the output, in the layouts that
// concatenation along a dimension allows.
#pragma once

#include "engine/strided_copy.hpp"

#include <span>
#include <vector>

namespace dlprim::concat {

/// dim as an index from the front. Throws Error(invalid_argument) where a shape of `rank` lacks it.
int dimension(const Attrs& attrs, int rank);

/// Layouts that the problem can be solved in: the same for all operands. Blocked channels need
/// every input but the last to fill its blocks where channels are what is joined.
std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem);

/// One copy an input, from that input to its place in the output.
std::vector<StridedCopy> copies(const Problem& problem);

}  // namespace dlprim::concat
