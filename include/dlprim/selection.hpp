// SPDX-License-Identifier: MIT
// Eager calls that choose elements: by a mask, by tensors of indices, or because they are not 0.
//
//   const dp::Tensor rows = dp::ops::index(x, {{}, rows_of, columns_of});   // x[:, rows, columns]
//   const dp::Tensor chosen = dp::ops::masked_select(x, mask);
//
// They are made of operators (dlprim/ops.hpp), and what that header says of layout, ownership and
// threads holds here. Tensors must be contiguous and on one context. Masks are bool. Indices are
// int32 or int64, and one below 0 counts from the end of its dimension.
//
// Waiting: calls whose result has a size that depends on values wait once, for that number. The
// others do not wait. An index out of range reads and writes nothing outside of the tensor, and the
// next call that waits throws Error(invalid_argument); on the host this call throws it.
//
// Errors: Error(invalid_argument) for shapes and types that do not fit.
#pragma once

#include <dlprim/namespace.hpp>
#include <dlprim/tensor.hpp>

#include <vector>

namespace dlprim::ops {

/// The positions of the elements that are not 0 (NaN is not), in row-major order: int64
/// [count, rank]. Waits. The result may lie at the beginning of memory for up to twice as many.
Tensor nonzero(const Tensor& x);

/// The elements of x at which `mask` is true, in row-major order: [count]. Both are broadcast
/// against each other. Waits.
Tensor masked_select(const Tensor& x, const Tensor& mask);

/// A copy of x in which the elements at which `mask` is true are replaced by the elements of
/// `source`, in row-major order. The mask is broadcast to x. A source of fewer elements than the
/// mask takes is an index out of range. Waits where the source has no elements.
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source);

/// x[indices[0], indices[1], ...] in numpy and PyTorch. A tensor of integers indexes one dimension,
/// an empty Tensor stands for all of one, and a mask for as many dimensions as it has, whose sizes
/// it must have. Dimensions without an entry are taken as they are. Indices are broadcast against
/// each other. Their dimensions replace the indexed dimensions where these lie side by side, and
/// come first otherwise. Waits once for each mask.
Tensor index(const Tensor& x, const std::vector<Tensor>& indices);

/// A copy of x in which index(x, indices) is replaced by `values`, which are broadcast to it and
/// have the type of x. If indices name an element several times, the last value counts; with
/// `accumulate` all are added to the element, in their order, with the same bits in every run.
/// `out` is a tensor for the result, which may be x itself; empty: a new one.
Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                 bool accumulate = false, const Tensor& out = {});

/// The elements of x, as if it had one dimension, at `indices`, whose shape the result has.
Tensor take(const Tensor& x, const Tensor& indices);
/// A copy of x in which take(x, indices) is replaced by `values` or, with `accumulate`, has them
/// added, as index_put() does. Indices and values have the same number of elements.
Tensor put(const Tensor& x, const Tensor& indices, const Tensor& values, bool accumulate = false,
           const Tensor& out = {});

}  // namespace dlprim::ops
