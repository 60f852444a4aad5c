// SPDX-License-Identifier: MIT
// Tensors one behind the other.
#include "ops/call.hpp"
#include "ops/kernels.hpp"

#include <ATen/WrapDimUtils.h>

namespace dlprim_torch {
namespace {

at::Tensor& cat_out(const at::ITensorListRef& tensors, std::int64_t dim, at::Tensor& out) {
    at::meta::cat_out(out, tensors, dim);  // checks the shapes, and gives out= its size
    if (out.numel() == 0) return out;
    std::vector<dp::Tensor> inputs;
    for (const at::Tensor& tensor : tensors) {
        if (tensor.numel() == 0) continue;  // among them those of shape [0], which fit everything
        inputs.push_back(view_of(
            tensor.scalar_type() == out.scalar_type() ? tensor : tensor.to(out.scalar_type())));
    }
    const std::int64_t axis = at::maybe_wrap_dim(dim, out.dim());
    if (inputs.size() == 1)
        copy(inputs.front(), view_of(out));
    else
        call_into({out}, dp::ops::Concat{.dim = axis}, inputs);
    return out;
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("cat.out", cat_out);
}

}  // namespace
}  // namespace dlprim_torch
