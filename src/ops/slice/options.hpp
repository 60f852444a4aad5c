// SPDX-License-Identifier: MIT
// Slice's options and geometry: dim, begin and end with negative positions resolved, and the copy
// that implements it in each layout.
#pragma once

#include "engine/copy_engines.hpp"

#include <vector>

namespace dlprim::slice {

/// Elements [begin, end) of dimension dim, all counted from the front.
struct Options {
    int dim = 0;
    std::int64_t begin = 0, end = 0;
    /// A negative position counts from the end. An end of -1 is the dimension's end. Throws
    /// Error(invalid_argument) if the input has no such elements.
    Options(const Attrs& attrs, const Shape& input);
};

/// Blocked layouts if the cut is between blocks, channels_last, and plain.
std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem);
std::vector<StridedCopy> copies(const Problem& problem);

inline constexpr Movement<StridedCopy> movement{"Slice", "slice.copy", "slice.host", copies,
                                                layouts};

}  // namespace dlprim::slice
