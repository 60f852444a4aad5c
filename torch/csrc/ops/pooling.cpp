// SPDX-License-Identifier: MIT
// Pooling of images: maxima with their positions, means, and means of adaptive windows.
#include "fallback/fallback.hpp"
#include "ops/call.hpp"

#include <optional>
#include <tuple>

namespace dlprim_torch {
namespace {

using Ints = c10::IntArrayRef;

/// A window as height and width.
struct Window {
    std::int64_t kernel[2], stride[2], pad[2];
};

std::int64_t at_or_only(Ints values, std::size_t i) {
    return values.size() == 1 ? values[0] : values[i];
}

Window window_of(Ints kernel, Ints stride, Ints padding) {
    Window made{};
    for (std::size_t i = 0; i < 2; ++i) {
        made.kernel[i] = at_or_only(kernel, i);
        made.stride[i] = stride.empty() ? made.kernel[i] : at_or_only(stride, i);
        made.pad[i] = at_or_only(padding, i);
    }
    return made;
}

dp::ops::Pooling2D options_of(const Window& window, std::string mode, bool ceil_mode) {
    return {.mode = std::move(mode),
            .kernel = {window.kernel[0], window.kernel[1]},
            .stride = {window.stride[0], window.stride[1]},
            .pad = {window.pad[0], window.pad[1]},
            .ceil_mode = ceil_mode};
}

/// [C, H, W] as [1, C, H, W].
at::Tensor as_batch(const at::Tensor& tensor) {
    return tensor.dim() == 3 ? tensor.unsqueeze(0) : tensor;
}

bool is_served(const at::Tensor& input, Ints dilation) {
    for (const std::int64_t d : dilation)
        if (d != 1) return false;
    return at::isFloatingType(input.scalar_type()) && input.scalar_type() != at::kDouble;
}

std::tuple<at::Tensor&, at::Tensor&> max_pool_out(const at::Tensor& self, Ints kernel, Ints stride,
                                                  Ints padding, Ints dilation, bool ceil_mode,
                                                  at::Tensor& out, at::Tensor& indices) {
    if (!is_served(self, dilation))
        return on_cpu<at::_ops::max_pool2d_with_indices_out>(self, kernel, stride, padding,
                                                             dilation, ceil_mode, out, indices);
    if (out.numel() == 0) return {out, indices};
    const Window window = window_of(kernel, stride, padding);
    dp::ops::Pooling2D options = options_of(window, "max", ceil_mode);
    options.return_indices = true;
    const std::vector<dp::Tensor> made = results_of(options, {view_of(as_batch(self))});
    give(out, made[0]);
    // dlprim numbers the elements of a window, PyTorch those of the image.
    const auto w = static_cast<double>(window.kernel[1]);
    const std::vector<double> scalars{w,
                                      static_cast<double>(window.stride[0]),
                                      static_cast<double>(window.pad[0]),
                                      static_cast<double>(window.stride[1]),
                                      static_cast<double>(window.pad[1]),
                                      static_cast<double>(self.size(-1))};
    call_pointwise_into(
        {indices},
        dp::ops::Pointwise{.code =
                               "row = floor((x0 + 0.5) / p0); column = x0 - row * p0; "
                               "y0 = (index(2) * p1 - p2 + row) * p5 + index(3) * p3 - p4 + column",
                           .dtypes = {dp::DType::i64}},
        {made[1]}, scalars);
    return {out, indices};
}

at::Tensor& max_pool_backward(const at::Tensor& grad_output, const at::Tensor& self, Ints kernel,
                              Ints stride, Ints padding, Ints dilation, bool ceil_mode,
                              const at::Tensor& indices, at::Tensor& grad_input) {
    if (!is_served(self, dilation))
        return on_cpu<at::_ops::max_pool2d_with_indices_backward_grad_input>(
            grad_output, self, kernel, stride, padding, dilation, ceil_mode, indices, grad_input);
    if (grad_input.numel() == 0) return grad_input;
    const auto options = options_of(window_of(kernel, stride, padding), "max", ceil_mode);
    give(grad_input,
         gradients_of(options, {view_of(as_batch(self))}, {}, {view_of(as_batch(grad_output))})[0]);
    return grad_input;
}

dp::ops::Pooling2D mean_options(Ints kernel, Ints stride, Ints padding, bool ceil_mode,
                                bool count_include_pad) {
    dp::ops::Pooling2D options = options_of(window_of(kernel, stride, padding), "avg", ceil_mode);
    options.count_include_pad = count_include_pad;
    return options;
}

at::Tensor& avg_pool_out(const at::Tensor& self, Ints kernel, Ints stride, Ints padding,
                         bool ceil_mode, bool count_include_pad,
                         std::optional<std::int64_t> divisor, at::Tensor& out) {
    if (!is_served(self, {}) || divisor)
        return on_cpu<at::_ops::avg_pool2d_out>(self, kernel, stride, padding, ceil_mode,
                                                count_include_pad, divisor, out);
    if (out.numel() == 0) return out;
    give(out, results_of(mean_options(kernel, stride, padding, ceil_mode, count_include_pad),
                         {view_of(as_batch(self))})[0]);
    return out;
}

at::Tensor& avg_pool_backward(const at::Tensor& grad_output, const at::Tensor& self, Ints kernel,
                              Ints stride, Ints padding, bool ceil_mode, bool count_include_pad,
                              std::optional<std::int64_t> divisor, at::Tensor& grad_input) {
    if (!is_served(self, {}) || divisor)
        return on_cpu<at::_ops::avg_pool2d_backward_grad_input>(
            grad_output, self, kernel, stride, padding, ceil_mode, count_include_pad, divisor,
            grad_input);
    if (grad_input.numel() == 0) return grad_input;
    give(grad_input,
         gradients_of(mean_options(kernel, stride, padding, ceil_mode, count_include_pad),
                      {view_of(as_batch(self))}, {}, {view_of(as_batch(grad_output))})[0]);
    return grad_input;
}

/// The windows of adaptive pooling, where they are all of one size and do not overlap.
std::optional<Window> even_windows(const at::Tensor& input, Ints output) {
    Window made{};
    for (int i = 0; i < 2; ++i) {
        const std::int64_t size = input.size(i - 2), parts = output[static_cast<std::size_t>(i)];
        if (parts == 0 || size % parts != 0) return std::nullopt;
        made.kernel[i] = made.stride[i] = size / parts;
    }
    return made;
}

at::Tensor adaptive_avg_pool(const at::Tensor& self, c10::SymIntArrayRef size) {
    const Ints output = C10_AS_INTARRAYREF_SLOW(size);
    const std::optional<Window> window = even_windows(self, output);
    if (!window || !is_served(self, {}) || self.numel() == 0)
        return on_cpu<at::_ops::_adaptive_avg_pool2d>(self, size);
    std::vector<std::int64_t> sizes = self.sizes().vec();
    std::copy(output.begin(), output.end(), sizes.end() - 2);
    const at::Tensor out = at::empty(sizes, self.options());
    give(out, results_of(options_of(*window, "avg", false), {view_of(as_batch(self))})[0]);
    return out;
}

at::Tensor adaptive_avg_pool_backward(const at::Tensor& grad_output, const at::Tensor& self) {
    const std::optional<Window> window =
        even_windows(self, grad_output.sizes().slice(static_cast<std::size_t>(self.dim() - 2)));
    if (!window || !is_served(self, {}) || self.numel() == 0)
        return on_cpu<at::_ops::_adaptive_avg_pool2d_backward>(grad_output, self);
    const at::Tensor grad_input = at::empty(self.sizes(), self.options());
    give(grad_input, gradients_of(options_of(*window, "avg", false), {view_of(as_batch(self))}, {},
                                  {view_of(as_batch(grad_output))})[0]);
    return grad_input;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("max_pool2d_with_indices.out", max_pool_out);
    m.impl("max_pool2d_with_indices_backward.grad_input", max_pool_backward);
    m.impl("avg_pool2d.out", avg_pool_out);
    m.impl("avg_pool2d_backward.grad_input", avg_pool_backward);
    m.impl("_adaptive_avg_pool2d", adaptive_avg_pool);
    m.impl("_adaptive_avg_pool2d_backward", adaptive_avg_pool_backward);
}

}  // namespace
}  // namespace dlprim_torch
