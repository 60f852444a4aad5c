// SPDX-License-Identifier: MIT
// Indexing: which parts of a tensor an array of indices names. Gather reads the parts and Scatter
// writes them; both share these modes:
//
//   rows       index i of any place names row i of dimension `dim`. The result of Gather has the
//              dimensions of the indices in the place of `dim` (ONNX Gather, torch.index_select).
//   elements   the indices have the rank of the tensor. Each names an element: its position in
//              dimension `dim`, the others being those of the index itself (torch.gather).
//   tuples     the last dimension of the indices holds tuples: positions in the first dimensions
//              behind `batch_dims` common ones, which together name a slice (ONNX GatherND).
//   dims       the last dimension of the indices holds positions in the dimensions `dims`. In the
//              result the other dimensions of the indices replace them where they lie side by side,
//              and come first otherwise (numpy's and PyTorch's x[:, i, j]).
//
// An index below 0 counts from the end of its dimension, or names nothing where the option from_end
// is false.
//
// All modes come down to one form. The tensor is an array of `slots`, each of `slice` elements that
// lie side by side. Part n of `parts` is the slot
//
//   sum_d digit_d(n) * strides_d + sum_k index[n / group % period][k] * multiples_k
//
// where digit_d(n) are the row-major coordinates of n in an array of sizes `digits`.
#pragma once

#include "base/attrs.hpp"

#include <dlprim/dtype.hpp>
#include <dlprim/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dlprim {

struct Indexing {
    enum class Mode : std::uint8_t { rows, elements, tuples, dims };

    Mode mode = Mode::rows;
    int dim = 0;           ///< of rows and elements, counted from the front
    bool from_end = true;  ///< whether an index below 0 counts from the end
    Shape values;          ///< the shape of all parts together: Gather's result, Scatter's updates
    std::int64_t parts = 1, slots = 1, slice = 1, period = 1, group = 1;
    Ints digits, strides;   ///< strides are in slots; digits are at least one and at most 8
    Ints sizes, multiples;  ///< per component of a tuple: the dimension indexed, and in slots

    /// From the options mode, dim, batch_dims, dims and from_end. Throws Error(invalid_argument)
    /// where the shapes disagree.
    Indexing(const Attrs& attrs, const Shape& data, const Shape& indices, DType index_type);

  private:
    void add_digit(std::int64_t size, std::int64_t stride);
    void name_rows(const Shape& data, const Shape& indices);
    void name_elements(const Shape& data, const Shape& indices);
    void name_tuples(const Shape& data, const Shape& indices, std::int64_t batch);
    void name_dims(const Shape& data, const Shape& indices, const Ints& dims);
};

/// The values of these options as attributes, for a node with the same indices.
Attrs indexing_attrs(const Attrs& attrs);

}  // namespace dlprim
