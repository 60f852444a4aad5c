// SPDX-License-Identifier: MIT
// Pooling of images of two and three dimensions: maxima with their positions, and means.
#include "ops/call.hpp"
#include "ops/kernels.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>

namespace dlprim_torch {
namespace {

using Ints = c10::IntArrayRef;
using List = dp::ops::IntList;

/// One integer for each of `rank` dimensions.
List list(Ints values, std::size_t rank) {
    if (values.size() == rank) return List(std::span(values.data(), rank));
    const std::vector<std::int64_t> all(rank, values.at(0));
    return List(std::span(all));
}

/// [C, ...] as [1, C, ...].
at::Tensor as_batch(const at::Tensor& tensor, std::size_t rank) {
    return tensor.dim() == static_cast<std::int64_t>(rank) + 1 ? tensor.unsqueeze(0) : tensor;
}

bool is_one(Ints values) {
    return std::all_of(values.begin(), values.end(), [](std::int64_t v) { return v == 1; });
}

/// The window of a pooling over `rank` dimensions.
dp::ops::PoolingND window(std::size_t rank, Ints kernel, Ints stride, Ints padding,
                          bool ceil_mode) {
    dp::ops::PoolingND made;
    made.kernel = list(kernel, rank);
    made.stride = stride.empty() ? made.kernel : list(stride, rank);
    made.pad = list(padding, rank);
    made.ceil_mode = ceil_mode;
    return made;
}

/// Whether the operators for two dimensions serve, which have more engines.
bool is_plain(const at::Tensor& self, std::size_t rank) {
    return rank == 2 && self.scalar_type() != at::kDouble;
}

void max_into(std::size_t rank, const at::Tensor& self, dp::ops::PoolingND options, Ints dilation,
              const at::Tensor& out, const at::Tensor& indices) {
    if (out.numel() == 0) return;
    const dp::Tensor x = view_of(as_batch(self, rank));
    std::vector<dp::Tensor> made;
    if (is_plain(self, rank) && is_one(dilation)) {
        made = results_of(dp::ops::MaxPooling2D{.kernel = options.kernel,
                                                .stride = options.stride,
                                                .pad = options.pad,
                                                .ceil_mode = options.ceil_mode},
                          {x});
    } else {
        options.dilate = list(dilation, rank);
        options.return_indices = true;
        made = results_of(options, {x});
    }
    give(out, made[0]);
    give(indices, made[1]);
}

void max_gradient_into(std::size_t rank, const at::Tensor& grad_output, const at::Tensor& self,
                       dp::ops::PoolingND options, Ints dilation, const at::Tensor& indices,
                       const at::Tensor& grad_input) {
    if (grad_input.numel() == 0) return;
    const dp::Tensor dy = view_of(as_batch(grad_output, rank));
    if (is_plain(self, rank) && is_one(dilation)) {
        give(grad_input,
             results_of(dp::ops::MaxPooling2DBackward{.kernel = options.kernel,
                                                      .stride = options.stride,
                                                      .pad = options.pad,
                                                      .ceil_mode = options.ceil_mode,
                                                      .sizes = {self.size(-2), self.size(-1)}},
                        {dy, view_of(as_batch(indices, rank))})[0]);
    } else {
        options.dilate = list(dilation, rank);
        give(grad_input, gradients_of(options, {view_of(as_batch(self, rank))}, {}, {dy})[0]);
    }
}

dp::ops::PoolingND mean_window(std::size_t rank, Ints kernel, Ints stride, Ints padding,
                               bool ceil_mode, bool count_include_pad,
                               std::optional<std::int64_t> divisor) {
    dp::ops::PoolingND made = window(rank, kernel, stride, padding, ceil_mode);
    made.mode = "avg";
    made.count_include_pad = count_include_pad;
    TORCH_CHECK(!divisor || *divisor != 0, "divisor must be not zero");
    made.divisor_override = std::abs(divisor.value_or(0));
    return made;
}

dp::ops::Pooling2D as_plain(const dp::ops::PoolingND& options) {
    return {.mode = options.mode,
            .kernel = options.kernel,
            .stride = options.stride,
            .pad = options.pad,
            .count_include_pad = options.count_include_pad,
            .ceil_mode = options.ceil_mode};
}

void mean_into(std::size_t rank, const at::Tensor& self, const dp::ops::PoolingND& options,
               const at::Tensor& out) {
    if (out.numel() == 0) return;
    const dp::Tensor x = view_of(as_batch(self, rank));
    give(out, is_plain(self, rank) && options.divisor_override == 0
                  ? results_of(as_plain(options), {x})[0]
                  : results_of(options, {x})[0]);
}

/// What the library's divisor, which is positive, leaves of one that is negative.
void negate_for(std::optional<std::int64_t> divisor, at::Tensor& result) {
    if (divisor.value_or(1) < 0) result.neg_();
}

void mean_gradient_into(std::size_t rank, const at::Tensor& grad_output, const at::Tensor& self,
                        const dp::ops::PoolingND& options, const at::Tensor& grad_input) {
    if (grad_input.numel() == 0) return;
    const dp::Tensor x = view_of(as_batch(self, rank)), dy = view_of(as_batch(grad_output, rank));
    give(grad_input, is_plain(self, rank) && options.divisor_override == 0
                         ? gradients_of(as_plain(options), {x}, {}, {dy})[0]
                         : gradients_of(options, {x}, {}, {dy})[0]);
}

std::tuple<at::Tensor&, at::Tensor&> max_pool2d(const at::Tensor& self, Ints kernel, Ints stride,
                                                Ints padding, Ints dilation, bool ceil_mode,
                                                at::Tensor& out, at::Tensor& indices) {
    at::meta::max_pool2d_with_indices_out(out, indices, self, kernel, stride, padding, dilation,
                                          ceil_mode);
    max_into(2, self, window(2, kernel, stride, padding, ceil_mode), dilation, out, indices);
    return {out, indices};
}

at::Tensor& max_pool2d_backward(const at::Tensor& grad_output, const at::Tensor& self, Ints kernel,
                                Ints stride, Ints padding, Ints dilation, bool ceil_mode,
                                const at::Tensor& indices, at::Tensor& grad_input) {
    at::meta::max_pool2d_with_indices_backward_out(grad_input, grad_output, self, kernel, stride,
                                                   padding, dilation, ceil_mode, indices);
    max_gradient_into(2, grad_output, self, window(2, kernel, stride, padding, ceil_mode), dilation,
                      indices, grad_input);
    return grad_input;
}

at::Tensor& avg_pool2d(const at::Tensor& self, Ints kernel, Ints stride, Ints padding,
                       bool ceil_mode, bool count_include_pad, std::optional<std::int64_t> divisor,
                       at::Tensor& out) {
    at::meta::avg_pool2d_out(out, self, kernel, stride, padding, ceil_mode, count_include_pad,
                             divisor);
    mean_into(2, self,
              mean_window(2, kernel, stride, padding, ceil_mode, count_include_pad, divisor), out);
    negate_for(divisor, out);
    return out;
}

at::Tensor& avg_pool2d_backward(const at::Tensor& grad_output, const at::Tensor& self, Ints kernel,
                                Ints stride, Ints padding, bool ceil_mode, bool count_include_pad,
                                std::optional<std::int64_t> divisor, at::Tensor& grad_input) {
    at::meta::avg_pool2d_backward_out(grad_input, grad_output, self, kernel, stride, padding,
                                      ceil_mode, count_include_pad, divisor);
    mean_gradient_into(
        2, grad_output, self,
        mean_window(2, kernel, stride, padding, ceil_mode, count_include_pad, divisor), grad_input);
    negate_for(divisor, grad_input);
    return grad_input;
}

at::Tensor& avg_pool3d(const at::Tensor& self, Ints kernel, Ints stride, Ints padding,
                       bool ceil_mode, bool count_include_pad, std::optional<std::int64_t> divisor,
                       at::Tensor& out) {
    at::meta::avg_pool3d_out(out, self, kernel, stride, padding, ceil_mode, count_include_pad,
                             divisor);
    mean_into(3, self,
              mean_window(3, kernel, stride, padding, ceil_mode, count_include_pad, divisor), out);
    negate_for(divisor, out);
    return out;
}

at::Tensor& avg_pool3d_backward(const at::Tensor& grad_output, const at::Tensor& self, Ints kernel,
                                Ints stride, Ints padding, bool ceil_mode, bool count_include_pad,
                                std::optional<std::int64_t> divisor, at::Tensor& grad_input) {
    at::meta::avg_pool3d_backward_out(grad_input, grad_output, self, kernel, stride, padding,
                                      ceil_mode, count_include_pad, divisor);
    mean_gradient_into(
        3, grad_output, self,
        mean_window(3, kernel, stride, padding, ceil_mode, count_include_pad, divisor), grad_input);
    negate_for(divisor, grad_input);
    return grad_input;
}

at::Tensor max_pool3d_backward(const at::Tensor& grad_output, const at::Tensor& self, Ints kernel,
                               Ints stride, Ints padding, Ints dilation, bool ceil_mode,
                               const at::Tensor& indices) {
    at::Tensor grad_input = at::empty(self.sizes(), self.options());
    max_gradient_into(3, grad_output, self, window(3, kernel, stride, padding, ceil_mode), dilation,
                      indices, grad_input);
    return grad_input;
}

std::tuple<at::Tensor, at::Tensor> max_pool3d(const at::Tensor& self, Ints kernel, Ints stride,
                                              Ints padding, Ints dilation, bool ceil_mode) {
    TORCH_CHECK(self.dim() == 4 || self.dim() == 5, "max_pool3d takes [N, C, D, H, W], not ",
                self.sizes(), ".");
    dp::ops::PoolingND options = window(3, kernel, stride, padding, ceil_mode);
    options.dilate = list(dilation, 3);
    options.return_indices = true;
    const std::vector<dp::Tensor> made = results_of(options, {view_of(as_batch(self, 3))});
    const at::Tensor out = new_tensor(made[0], self.device()),
                     indices = new_tensor(made[1], self.device());
    if (self.dim() == 5) return {out, indices};
    return {out.squeeze(0), indices.squeeze(0)};
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("max_pool2d_with_indices.out", max_pool2d);
    m.impl("max_pool2d_with_indices_backward.grad_input", max_pool2d_backward);
    m.impl("max_pool3d_with_indices", max_pool3d);
    m.impl("max_pool3d_with_indices_backward", max_pool3d_backward);
    m.impl("avg_pool2d.out", avg_pool2d);
    m.impl("avg_pool2d_backward.grad_input", avg_pool2d_backward);
    m.impl("avg_pool3d.out", avg_pool3d);
    m.impl("avg_pool3d_backward.grad_input", avg_pool3d_backward);
}

}  // namespace
}  // namespace dlprim_torch
