// SPDX-License-Identifier: MIT
// Copies and conversions between tensors of dlprim, whatever their strides and types.
//
// This file and its source are the only place that knows how strided tensors are copied; when the
// library gets a faster way, only they change.
#pragma once

#include "common.hpp"

namespace dlprim_torch {

/// Whether eager calls of the library read and write strided views as they lie.
template <typename T>
concept has_views = requires(const T& tensor) {
    tensor.bit_cast(dp::DType::u8);
};
inline constexpr bool reads_views = has_views<dp::Tensor>;

/// Copies `from` to `to`, which have the same shape and context, converting elements.
void copy(const dp::Tensor& from, const dp::Tensor& to);
/// Sets all elements.
void fill(const dp::Tensor& to, double value);
/// The tensor if it is row-major without gaps, else a copy that is.
dp::Tensor plain(const dp::Tensor& tensor);
/// The same memory as elements of another type; one dimension where the size of elements differs.
/// The tensor must be row-major.
dp::Tensor bits_as(const dp::Tensor& tensor, dp::DType dtype);

}  // namespace dlprim_torch
