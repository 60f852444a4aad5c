// SPDX-License-Identifier: MIT
// Copies and conversions between tensors of dlprim, whatever their strides and types.
// Nothing here waits.
#pragma once

#include "common.hpp"

namespace dlprim_torch {

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
