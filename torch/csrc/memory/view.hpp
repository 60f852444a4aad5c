// SPDX-License-Identifier: MIT
// From tensors of PyTorch to tensors of dlprim.
#pragma once

#include "common.hpp"
#include "memory/memory.hpp"

namespace dlprim_torch {

/// Throws NotImplementedError for types that dlprim does not have, such as complex numbers.
dp::DType dtype_of(at::ScalarType type);
/// Whether dtype_of() would return.
bool has_dtype(at::ScalarType type);
at::ScalarType scalar_type_of(dp::DType dtype);
/// Whether operators of dlprim take this tensor.
inline bool serves(const at::Tensor& tensor) {
    return has_dtype(tensor.scalar_type()) && tensor.dim() <= dp::Shape::max_rank;
}

inline Memory& memory_of(const at::Tensor& tensor) {
    return Memory::of(tensor.storage());
}
/// The context of the tensor's device.
const dp::Context& context_of(const at::Tensor& tensor);

/// The tensor's elements, with its sizes and strides, on the same memory. A bit of negation is
/// resolved first. Reading it, and writing to it, is reading and writing the tensor.
dp::Tensor view_of(const at::Tensor& tensor);
/// As view_of(), row-major: a copy where the tensor is not.
dp::Tensor plain_of(const at::Tensor& tensor);
/// As view_of() for who only moves elements, with a type of the same size: also for complex numbers
/// (as pairs of doubles, or int64), and double where the device has no double arithmetic.
dp::Tensor bits_of(const at::Tensor& tensor);

/// Whether `tensor` is all of its storage, row-major, so that a result may be hung on the storage.
bool is_whole(const at::Tensor& tensor);
/// Makes `result` the contents of `out`, which has as many elements: hangs it on the storage where
/// the tensor is all of it and has the type, and copies and converts it else.
void give(const at::Tensor& out, const dp::Tensor& result);
/// A new tensor that holds `result`.
at::Tensor new_tensor(const dp::Tensor& result, c10::Device device);

}  // namespace dlprim_torch
