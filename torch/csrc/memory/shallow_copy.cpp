// SPDX-License-Identifier: MIT
// Whether `tensor.data = other` may put a tensor of "ocl" in the place of one of the CPU, and the
// other way round. nn.Module.to() asks it: if it may, parameters stay the objects that they are,
// so that weights which two modules share stay shared, and optimizers that were made before still
// hold them. PyTorch's own answer knows the devices that it comes with alone.
#include "common.hpp"

namespace dlprim_torch {
namespace {

bool is_dense(const at::Tensor& tensor) {
    return tensor.layout() == at::kStrided && !tensor.is_quantized() && !tensor.is_nested() &&
           (tensor.is_cpu() || tensor.is_privateuseone());
}

bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
    return is_dense(self) && is_dense(from);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
}

}  // namespace
}  // namespace dlprim_torch
