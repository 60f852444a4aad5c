// SPDX-License-Identifier: MIT
// IndexedOperator: an operator with an input that holds indices into dimensions, or lengths of
// sequences, which are checked where they come from an input of the network (api/index_inputs.hpp).
#pragma once

#include "graph/operator.hpp"

namespace dlprim {

struct IndexInput {
    int input = -1;  ///< its number
    /// One size: each element is an index of such a dimension. Several: the last dimension of the
    /// input holds tuples of so many.
    Ints sizes;
    bool from_end = true;  ///< whether an index below 0 counts from the end of its dimension
    /// Whether row r of the input holds cumulative lengths instead, which begin with 0, do not fall
    /// and end with sizes[r].
    bool cumulative = false;
};

class IndexedOperator : public Operator {
  public:
    virtual IndexInput index_input(const Attrs& attrs,
                                   std::span<const TensorSpec> inputs) const = 0;
};

}  // namespace dlprim
