// SPDX-License-Identifier: MIT
// Pooling of images of two and three dimensions: maxima with their positions, and means, of windows
// and of a given number of parts.
#include "ops/call.hpp"
#include "ops/kernels.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>

namespace dlprim_torch {
namespace {

using List = dp::ops::IntList;
using dp::ops::Pooling;
using TwoTensors = std::tuple<at::Tensor&, at::Tensor&>;

/// One integer for each of `rank` dimensions.
List list(Ints values, std::size_t rank) {
    if (values.size() == rank) return List(std::span(values.data(), rank));
    const std::vector<std::int64_t> all(rank, values.at(0));
    return List(std::span(all));
}

/// The last `rank` sizes.
Ints image_sizes(const at::Tensor& tensor, std::size_t rank) {
    return tensor.sizes().slice(static_cast<std::size_t>(tensor.dim()) - rank);
}

/// [C, ...] as [1, C, ...], where the image has `rank` dimensions.
dp::Tensor batch_of(const at::Tensor& tensor, std::size_t rank) {
    const bool single = tensor.dim() == static_cast<std::int64_t>(rank) + 1;
    return view_of(single ? tensor.unsqueeze(0) : tensor);
}

/// The window of a pooling over `rank` dimensions.
Pooling window(std::size_t rank, Ints kernel, Ints stride, Ints padding, bool ceil_mode) {
    Pooling made;
    made.kernel = list(kernel, rank);
    made.stride = stride.empty() ? made.kernel : list(stride, rank);
    made.pad = list(padding, rank);
    made.ceil_mode = ceil_mode;
    return made;
}

Pooling max_window(std::size_t rank, Ints kernel, Ints stride, Ints padding, Ints dilation,
                   bool ceil_mode) {
    Pooling made = window(rank, kernel, stride, padding, ceil_mode);
    made.dilate = list(dilation, rank);
    made.positions = "image";
    return made;
}

Pooling parts(const char* mode, Ints output) {
    return {.mode = mode, .output = list(output, output.size())};
}

void max_into(std::size_t rank, const at::Tensor& self, const Pooling& options,
              const at::Tensor& out, const at::Tensor& indices) {
    if (out.numel() == 0) return;
    const std::vector<dp::Tensor> made = results_of(options, {batch_of(self, rank)});
    give(out, made[0]);
    give(indices, made[1]);
}

void max_gradient_into(std::size_t rank, const at::Tensor& grad_output, const at::Tensor& self,
                       const Pooling& options, const at::Tensor& indices,
                       const at::Tensor& grad_input) {
    if (grad_input.numel() == 0) return;
    const dp::ops::PoolingBackward gradient{.kernel = options.kernel,
                                            .stride = options.stride,
                                            .pad = options.pad,
                                            .dilate = options.dilate,
                                            .ceil_mode = options.ceil_mode,
                                            .output = options.output,
                                            .sizes = list(image_sizes(self, rank), rank)};
    give(grad_input,
         results_of(gradient, {batch_of(grad_output, rank), batch_of(indices, rank)})[0]);
}

void mean_gradient_into(std::size_t rank, const at::Tensor& grad_output, const at::Tensor& self,
                        const Pooling& options, const at::Tensor& grad_input) {
    if (grad_input.numel() == 0) return;
    give(grad_input,
         gradients_of(options, {batch_of(self, rank)}, {}, {batch_of(grad_output, rank)})[0]);
}

TwoTensors max_pool2d(const at::Tensor& self, Ints kernel, Ints stride, Ints padding, Ints dilation,
                      bool ceil_mode, at::Tensor& out, at::Tensor& indices) {
    at::meta::max_pool2d_with_indices_out(out, indices, self, kernel, stride, padding, dilation,
                                          ceil_mode);
    max_into(2, self, max_window(2, kernel, stride, padding, dilation, ceil_mode), out, indices);
    return {out, indices};
}

at::Tensor& max_pool2d_backward(const at::Tensor& grad_output, const at::Tensor& self, Ints kernel,
                                Ints stride, Ints padding, Ints dilation, bool ceil_mode,
                                const at::Tensor& indices, at::Tensor& grad_input) {
    at::meta::max_pool2d_with_indices_backward_out(grad_input, grad_output, self, kernel, stride,
                                                   padding, dilation, ceil_mode, indices);
    max_gradient_into(2, grad_output, self,
                      max_window(2, kernel, stride, padding, dilation, ceil_mode), indices,
                      grad_input);
    return grad_input;
}

std::tuple<at::Tensor, at::Tensor> max_pool3d(const at::Tensor& self, Ints kernel, Ints stride,
                                              Ints padding, Ints dilation, bool ceil_mode) {
    TORCH_CHECK(self.dim() == 4 || self.dim() == 5, "max_pool3d takes [N, C, D, H, W], not ",
                self.sizes(), ".");
    const std::vector<dp::Tensor> made = results_of(
        max_window(3, kernel, stride, padding, dilation, ceil_mode), {batch_of(self, 3)});
    const at::Tensor out = new_tensor(made[0], self.device()),
                     indices = new_tensor(made[1], self.device());
    if (self.dim() == 5) return {out, indices};
    return {out.squeeze(0), indices.squeeze(0)};
}

at::Tensor max_pool3d_backward(const at::Tensor& grad_output, const at::Tensor& self, Ints kernel,
                               Ints stride, Ints padding, Ints dilation, bool ceil_mode,
                               const at::Tensor& indices) {
    at::Tensor grad_input = at::empty(self.sizes(), self.options());
    max_gradient_into(3, grad_output, self,
                      max_window(3, kernel, stride, padding, dilation, ceil_mode), indices,
                      grad_input);
    return grad_input;
}

Pooling mean_window(std::size_t rank, Ints kernel, Ints stride, Ints padding, bool ceil_mode,
                    bool count_include_pad, std::optional<std::int64_t> divisor) {
    Pooling made = window(rank, kernel, stride, padding, ceil_mode);
    made.mode = "avg";
    made.count_include_pad = count_include_pad;
    TORCH_CHECK(!divisor || *divisor != 0, "divisor must be not zero");
    made.divisor_override = std::abs(divisor.value_or(0));
    return made;
}

/// What the library's divisor, which is positive, leaves of one that is negative.
void negate_for(std::optional<std::int64_t> divisor, at::Tensor& result) {
    if (divisor.value_or(1) < 0) result.neg_();
}

template <std::size_t rank, auto check>
at::Tensor& avg_pool(const at::Tensor& self, Ints kernel, Ints stride, Ints padding, bool ceil_mode,
                     bool count_include_pad, std::optional<std::int64_t> divisor, at::Tensor& out) {
    check(out, self, kernel, stride, padding, ceil_mode, count_include_pad, divisor);
    const Pooling options =
        mean_window(rank, kernel, stride, padding, ceil_mode, count_include_pad, divisor);
    if (out.numel() > 0) give(out, results_of(options, {batch_of(self, rank)})[0]);
    negate_for(divisor, out);
    return out;
}

template <std::size_t rank, auto check>
at::Tensor& avg_pool_backward(const at::Tensor& grad_output, const at::Tensor& self, Ints kernel,
                              Ints stride, Ints padding, bool ceil_mode, bool count_include_pad,
                              std::optional<std::int64_t> divisor, at::Tensor& grad_input) {
    check(grad_input, grad_output, self, kernel, stride, padding, ceil_mode, count_include_pad,
          divisor);
    mean_gradient_into(
        rank, grad_output, self,
        mean_window(rank, kernel, stride, padding, ceil_mode, count_include_pad, divisor),
        grad_input);
    negate_for(divisor, grad_input);
    return grad_input;
}

at::Tensor part_means(const at::Tensor& self, c10::SymIntArrayRef size) {
    const Ints output = C10_AS_INTARRAYREF_SLOW(size);
    const auto rank = static_cast<std::int64_t>(output.size());
    TORCH_CHECK(self.dim() == rank + 1 || self.dim() == rank + 2, "Adaptive pooling into ", output,
                " parts needs [C, ...] or [N, C, ...], not ", self.sizes(), ".");
    std::vector<std::int64_t> sizes = self.sizes().vec();
    std::copy(output.begin(), output.end(), sizes.end() - rank);
    at::Tensor out = at::empty(sizes, self.options());
    if (out.numel() > 0)
        give(out, results_of(parts("avg", output), {batch_of(self, output.size())})[0]);
    return out;
}

template <std::size_t rank>
at::Tensor part_means_backward(const at::Tensor& grad_output, const at::Tensor& self) {
    at::Tensor grad_input = at::empty(self.sizes(), self.options());
    mean_gradient_into(rank, grad_output, self, parts("avg", image_sizes(grad_output, rank)),
                       grad_input);
    return grad_input;
}

template <auto check>
TwoTensors part_maxima(const at::Tensor& self, Ints output, at::Tensor& out, at::Tensor& indices) {
    check(out, indices, self, output);
    Pooling options = parts("max", output);
    options.positions = "image";
    max_into(output.size(), self, options, out, indices);
    return {out, indices};
}

template <std::size_t rank, auto check>
at::Tensor& part_maxima_backward(const at::Tensor& grad_output, const at::Tensor& self,
                                 const at::Tensor& indices, at::Tensor& grad_input) {
    check(grad_input, grad_output, self, indices);
    max_gradient_into(rank, grad_output, self, parts("max", image_sizes(grad_output, rank)),
                      indices, grad_input);
    return grad_input;
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("max_pool2d_with_indices.out", max_pool2d);
    m.impl("max_pool2d_with_indices_backward.grad_input", max_pool2d_backward);
    m.impl("max_pool3d_with_indices", max_pool3d);
    m.impl("max_pool3d_with_indices_backward", max_pool3d_backward);
    m.impl("avg_pool2d.out", avg_pool<2, at::meta::avg_pool2d_out>);
    m.impl("avg_pool2d_backward.grad_input",
           avg_pool_backward<2, at::meta::avg_pool2d_backward_out>);
    m.impl("avg_pool3d.out", avg_pool<3, at::meta::avg_pool3d_out>);
    m.impl("avg_pool3d_backward.grad_input",
           avg_pool_backward<3, at::meta::avg_pool3d_backward_out>);
    m.impl("_adaptive_avg_pool2d", part_means);
    m.impl("_adaptive_avg_pool2d_backward", part_means_backward<2>);
    m.impl("_adaptive_avg_pool3d", part_means);
    m.impl("_adaptive_avg_pool3d_backward", part_means_backward<3>);
    m.impl("adaptive_max_pool2d.out", part_maxima<at::meta::adaptive_max_pool2d_out>);
    m.impl("adaptive_max_pool2d_backward.grad_input",
           part_maxima_backward<2, at::meta::adaptive_max_pool2d_backward_out>);
    m.impl("adaptive_max_pool3d.out", part_maxima<at::meta::adaptive_max_pool3d_out>);
    m.impl("adaptive_max_pool3d_backward.grad_input",
           part_maxima_backward<3, at::meta::adaptive_max_pool3d_backward_out>);
}

}  // namespace
}  // namespace dlprim_torch
