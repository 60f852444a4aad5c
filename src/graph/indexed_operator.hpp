// SPDX-License-Identifier: MIT
// IndexedOperator: an operator with an input that holds indices into dimensions, which are checked
// where they come from an input of the network (api/index_inputs.hpp).
#pragma once

#include "graph/operator.hpp"

namespace dlprim {

struct IndexInput {
    int input = -1;  ///< its number
    /// One size: each element is an index of such a dimension. Several: the last dimension of the
    /// input holds tuples of so many.
    Ints sizes;
    bool from_end = true;  ///< whether an index below 0 counts from the end of its dimension
};

class IndexedOperator : public Operator {
  public:
    virtual IndexInput index_input(const Attrs& attrs,
                                   std::span<const TensorSpec> inputs) const = 0;

  protected:
    /// Options that say how indices name parts of a tensor (engine/indexing/indexing.hpp).
    static OptionSpec mode_option() {
        return {"mode", OptionKind::text, std::string("rows"), "rows, elements, tuples or dims"};
    }
    static OptionSpec dim_option() {
        return {
            "dim", OptionKind::integer, std::int64_t{0},
            "of rows and elements: the dimension that is indexed; negative counts from the end"};
    }
    static OptionSpec dims_option() {
        return {"dims", OptionKind::integers, Ints{},
                "of dims: the dimensions that are indexed, in rising order"};
    }
    static OptionSpec batch_dims_option() {
        return {"batch_dims", OptionKind::integer, std::int64_t{0},
                "of tuples: leading dimensions that data and indices have in common"};
    }
    static OptionSpec from_end_option() {
        return {"from_end", OptionKind::boolean, true,
                "whether an index below 0 counts from the end of its dimension; false: it is an "
                "error"};
    }
};

}  // namespace dlprim
