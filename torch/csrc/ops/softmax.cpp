// SPDX-License-Identifier: MIT
// Softmax and its logarithm. Backward reads the result of forward, so nothing runs twice.
#include "ops/call.hpp"

#include <ATen/WrapDimUtils.h>

#include <string>

namespace dlprim_torch {
namespace {

void softmax_into(const at::Tensor& out, const at::Tensor& self, std::int64_t dim, bool log) {
    if (out.numel() == 0) return;
    if (self.dim() == 0) {
        out.fill_(log ? 0 : 1);
        return;
    }
    const at::Tensor input =
        self.scalar_type() == out.scalar_type() ? self : self.to(out.scalar_type());
    call_into({out}, dp::ops::Softmax{.log = log, .axis = dim}, {view_of(input)});
}

/// `sum` is what is summed over the dimension, `result` the gradient from x0 (of the result), x1
/// (the result) and x2 (the sum).
void gradient_into(const at::Tensor& grad_input, const at::Tensor& grad, const at::Tensor& output,
                   std::int64_t dim, const char* sum, const char* result) {
    if (grad_input.numel() == 0) return;
    if (output.dim() == 0) {
        grad_input.zero_();
        return;
    }
    const std::int64_t axis = at::maybe_wrap_dim(dim, output.dim());
    std::vector<std::int64_t> sizes = output.sizes().vec();
    sizes[static_cast<std::size_t>(axis)] = 1;
    const at::Tensor sums = at::empty(
        sizes,
        output.options().dtype(output.scalar_type() == at::kDouble ? at::kDouble : at::kFloat));
    pointwise_into({sums}, "y0 = sum[" + std::to_string(axis) + "](" + sum + ")", {grad, output});
    pointwise_into({grad_input}, result, {grad, output, sums});
}

at::Tensor& softmax_out(const at::Tensor& self, std::int64_t dim, bool, at::Tensor& out) {
    softmax_into(out, self, dim, false);
    return out;
}

at::Tensor& log_softmax_out(const at::Tensor& self, std::int64_t dim, bool, at::Tensor& out) {
    softmax_into(out, self, dim, true);
    return out;
}

at::Tensor& softmax_backward(const at::Tensor& grad, const at::Tensor& output, std::int64_t dim,
                             at::ScalarType, at::Tensor& grad_input) {
    gradient_into(grad_input, grad, output, dim, "x0 * x1", "y0 = (x0 - x2) * x1");
    return grad_input;
}

at::Tensor& log_softmax_backward(const at::Tensor& grad, const at::Tensor& output, std::int64_t dim,
                                 at::ScalarType, at::Tensor& grad_input) {
    gradient_into(grad_input, grad, output, dim, "x0", "y0 = x0 - exp(x1) * x2");
    return grad_input;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("_softmax.out", softmax_out);
    m.impl("_log_softmax.out", log_softmax_out);
    m.impl("_softmax_backward_data.out", softmax_backward);
    m.impl("_log_softmax_backward_data.out", log_softmax_backward);
}

}  // namespace
}  // namespace dlprim_torch
