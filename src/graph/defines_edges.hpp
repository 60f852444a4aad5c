// SPDX-License-Identifier: MIT
// DefinesEdges: what an operator derives from beside Operator if it says what it makes of the edges
// of its operands' types. Checks of engines draw these, too (check/draw.hpp).
#pragma once

#include "base/attrs.hpp"

namespace dlprim {

class DefinesEdges {
  public:
    virtual ~DefinesEdges() = default;
    /// Whether an element of a result depends on one element of each input, and is defined for
    /// signed zeros, infinities, NaN and the limits of integer types.
    virtual bool defines_edges(const Attrs& attrs) const = 0;
};

}  // namespace dlprim
