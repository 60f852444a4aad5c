// SPDX-License-Identifier: MIT
// NonzeroRows' options: counts (int64 [n]: how many elements are wanted up to each of n) -> the
// coordinates of the wanted ones in a tensor of n elements, and their number.
#pragma once

#include "base/attrs.hpp"

#include <dlprim/shape.hpp>

namespace dlprim::nonzero {

constexpr const char* rows_type = "NonzeroRows";

struct Rows {
    std::int64_t elements;  ///< n
    std::int64_t size;      ///< rows of the result
    std::int64_t fill;
    Ints sizes;  ///< of the tensor in which coordinates count

    /// From the options size, fill and shape.
    Rows(const Attrs& attrs, const Shape& counts);
    Shape result() const { return {size, static_cast<std::int64_t>(sizes.size())}; }
};

}  // namespace dlprim::nonzero
