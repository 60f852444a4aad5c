// SPDX-License-Identifier: MIT
// Weights as direction and length, w = g * v / |v|, where |v| has one number for each index of one
// dimension, the first or the last; PyTorch makes others of plain operators.
#include "ops/call.hpp"
#include "ops/dims.hpp"

#include <ATen/WrapDimUtils.h>
#include <c10/core/DeviceGuard.h>

namespace dlprim_torch {
namespace {

/// What a sum over the other dimensions gives of `code`. A vector has no others, and nothing is
/// summed.
at::Tensor summed(const std::string& code, const std::vector<at::Tensor>& inputs,
                  const at::Tensor& like, std::int64_t dim) {
    const at::Tensor& v = inputs.front();
    at::Tensor out = at::empty(like.sizes(), like.options());
    const std::string axes = axes_of(all_but(dim, v.dim()), v.dim());
    const std::string sum = v.dim() == 1 ? "y0 = (" : "y0 = sum" + axes + "(";
    pointwise_into({out}, sum + code + ")", inputs);
    return out;
}

/// Lengths are float where weights have 16 bits.
at::Tensor lengths_like(const at::Tensor& v, const at::Tensor& g) {
    return at::empty(g.sizes(),
                     v.element_size() == 2 ? g.options().dtype(at::kFloat) : g.options());
}

std::tuple<at::Tensor, at::Tensor> weight_norm(const at::Tensor& v, const at::Tensor& g,
                                               std::int64_t dim) {
    const c10::DeviceGuard guard(v.device());
    dim = at::maybe_wrap_dim(dim, v.dim());
    at::Tensor w = at::empty(v.sizes(), v.options());
    const at::Tensor like = lengths_like(v, g);
    if (v.numel() == 0) return {w, at::zeros_like(like)};
    at::Tensor lengths = summed("x0 * x0", {v}, like, dim).sqrt_();
    pointwise_into({w}, "y0 = x0 * (x1 / x2)", {v, g, lengths});
    return {w, lengths};
}

/// dg = <dw, v> / |v|, and dv = g / |v| * (dw - v * dg / |v|).
std::tuple<at::Tensor, at::Tensor> weight_norm_backward(const at::Tensor& dw, const at::Tensor& v,
                                                        const at::Tensor& g,
                                                        const at::Tensor& lengths,
                                                        std::int64_t dim) {
    const c10::DeviceGuard guard(v.device());
    dim = at::maybe_wrap_dim(dim, v.dim());
    at::Tensor dv = at::empty(v.sizes(), v.options());
    if (v.numel() == 0) return {dv, at::zeros_like(g)};
    const at::Tensor along = summed("x0 * x1", {dw, v}, lengths, dim).div_(lengths);
    pointwise_into({dv}, "y0 = x2 / x3 * (x0 - x1 * (x4 / x3))", {dw, v, g, lengths, along});
    return {dv, along.to(g.scalar_type())};
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("_weight_norm_interface", weight_norm);
    m.impl("_weight_norm_interface_backward", weight_norm_backward);
}

}  // namespace
}  // namespace dlprim_torch
