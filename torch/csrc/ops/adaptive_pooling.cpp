// SPDX-License-Identifier: MIT
// Pooling that cuts an image into a given number of parts, of two and three dimensions.
#include "ops/call.hpp"
#include "ops/kernels.hpp"

#include <tuple>

namespace dlprim_torch {
namespace {

using Ints = c10::IntArrayRef;

/// [C, ...] as [1, C, ...], where the image has `rank` dimensions.
at::Tensor as_batch(const at::Tensor& tensor, std::int64_t rank) {
    return tensor.dim() == rank + 1 ? tensor.unsqueeze(0) : tensor;
}

dp::ops::AdaptivePooling options_of(const char* mode, Ints output) {
    return {.mode = mode, .output = dp::ops::IntList(std::span(output.data(), output.size()))};
}

at::Tensor means(const at::Tensor& self, c10::SymIntArrayRef size) {
    const Ints output = C10_AS_INTARRAYREF_SLOW(size);
    const auto rank = static_cast<std::int64_t>(output.size());
    TORCH_CHECK(self.dim() == rank + 1 || self.dim() == rank + 2, "Adaptive pooling into ", output,
                " parts needs [C, ...] or [N, C, ...], not ", self.sizes(), ".");
    std::vector<std::int64_t> sizes = self.sizes().vec();
    std::copy(output.begin(), output.end(), sizes.end() - rank);
    at::Tensor out = at::empty(sizes, self.options());
    if (out.numel() > 0)
        give(out, results_of(options_of("avg", output), {view_of(as_batch(self, rank))})[0]);
    return out;
}

at::Tensor means_backward(const at::Tensor& grad_output, const at::Tensor& self,
                          std::int64_t rank) {
    at::Tensor grad_input = at::empty(self.sizes(), self.options());
    if (grad_input.numel() == 0) return grad_input;
    const Ints output = grad_output.sizes().slice(static_cast<std::size_t>(self.dim() - rank));
    give(grad_input, gradients_of(options_of("avg", output), {view_of(as_batch(self, rank))}, {},
                                  {view_of(as_batch(grad_output, rank))})[0]);
    return grad_input;
}

at::Tensor means_backward2d(const at::Tensor& grad_output, const at::Tensor& self) {
    return means_backward(grad_output, self, 2);
}

at::Tensor means_backward3d(const at::Tensor& grad_output, const at::Tensor& self) {
    return means_backward(grad_output, self, 3);
}

template <auto check>
std::tuple<at::Tensor&, at::Tensor&> maxima(const at::Tensor& self, Ints output, at::Tensor& out,
                                            at::Tensor& indices) {
    check(out, indices, self, output);
    if (out.numel() == 0) return {out, indices};
    dp::ops::AdaptivePooling options = options_of("max", output);
    options.return_indices = true;
    const std::vector<dp::Tensor> made =
        results_of(options, {view_of(as_batch(self, static_cast<std::int64_t>(output.size())))});
    give(out, made[0]);
    give(indices, made[1]);
    return {out, indices};
}

at::Tensor& maxima_backward(const at::Tensor& grad_output, const at::Tensor& self,
                            std::int64_t rank, at::Tensor& grad_input) {
    if (grad_input.numel() == 0) return grad_input;
    const Ints output = grad_output.sizes().slice(static_cast<std::size_t>(self.dim() - rank));
    give(grad_input, gradients_of(options_of("max", output), {view_of(as_batch(self, rank))}, {},
                                  {view_of(as_batch(grad_output, rank))})[0]);
    return grad_input;
}

at::Tensor& maxima_backward2d(const at::Tensor& grad_output, const at::Tensor& self,
                              const at::Tensor& indices, at::Tensor& grad_input) {
    at::meta::adaptive_max_pool2d_backward_out(grad_input, grad_output, self, indices);
    return maxima_backward(grad_output, self, 2, grad_input);
}

at::Tensor& maxima_backward3d(const at::Tensor& grad_output, const at::Tensor& self,
                              const at::Tensor& indices, at::Tensor& grad_input) {
    at::meta::adaptive_max_pool3d_backward_out(grad_input, grad_output, self, indices);
    return maxima_backward(grad_output, self, 3, grad_input);
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("_adaptive_avg_pool2d", means);
    m.impl("_adaptive_avg_pool2d_backward", means_backward2d);
    m.impl("_adaptive_avg_pool3d", means);
    m.impl("_adaptive_avg_pool3d_backward", means_backward3d);
    m.impl("adaptive_max_pool2d.out", maxima<at::meta::adaptive_max_pool2d_out>);
    m.impl("adaptive_max_pool2d_backward.grad_input", maxima_backward2d);
    m.impl("adaptive_max_pool3d.out", maxima<at::meta::adaptive_max_pool3d_out>);
    m.impl("adaptive_max_pool3d_backward.grad_input", maxima_backward3d);
}

}  // namespace
}  // namespace dlprim_torch
