// SPDX-License-Identifier: MIT
// The parts of the class Tensor, one file each.
#pragma once

#include "bind.hpp"

namespace dlprim::python {

using TensorClass = nb::class_<Tensor>;

void bind_views(TensorClass& type);
void bind_arithmetic(TensorClass& type);
void bind_dlpack(nb::module_& module, TensorClass& type);

/// tensor[index], a view, as in numpy's basic indexing.
Tensor indexed(const Tensor& tensor, nb::handle index);

/// The arguments of a method that accepts sizes or dimensions either as one sequence or one by one.
nb::object one_or_many(const nb::tuple& arguments);

/// Whether an object is a real number of Python or numpy, and not an array.
bool is_number(nb::handle object);
/// Overwrites all elements with a number. Throws Error(invalid_argument) for an int that the type
/// cannot hold.
void fill(Tensor& tensor, nb::handle number);

/// A copy in separate memory, without gaps.
Tensor copied(const Tensor& tensor);
/// Copies between tensors of one device without waiting. Returns false if that is impossible.
bool copy_on_device(Tensor& to, const Tensor& from);
/// A copy with elements of another type.
Tensor cast_to(const Tensor& tensor, DType dtype);

/// Memory that an object provides by DLPack; the owner keeps it alive.
HostArray from_dlpack_host(nb::handle object);

}  // namespace dlprim::python
