// SPDX-License-Identifier: MIT
// The parts of the class Tensor, a file each.
#pragma once

#include "bind.hpp"

namespace dlprim::python {

using TensorClass = nb::class_<Tensor>;

void bind_views(TensorClass& type);
void bind_arithmetic(TensorClass& type);
void bind_dlpack(nb::module_& module, TensorClass& type);

/// tensor[index] as numpy's basic indexing has it: a view.
Tensor indexed(const Tensor& tensor, nb::handle index);

/// The arguments of a method that takes sizes or dimensions as one sequence or one by one.
nb::object one_or_many(const nb::tuple& arguments);

/// Whether an object is a real number of Python's or numpy's, not an array.
bool is_number(nb::handle object);
/// Overwrites all elements by a number. Throws Error(invalid_argument) for an int that the type
/// does not hold.
void fill(Tensor& tensor, nb::handle number);

/// A copy in memory of its own, without gaps.
Tensor copied(const Tensor& tensor);
/// Copies between tensors of one device without a wait, or says that it cannot.
bool copy_on_device(Tensor& to, const Tensor& from);
/// A copy with elements of another type.
Tensor cast_to(const Tensor& tensor, DType dtype);

/// Memory that an object offers by DLPack; the owner keeps it.
HostArray from_dlpack_host(nb::handle object);

}  // namespace dlprim::python
